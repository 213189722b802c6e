"""The kit installed from its wheel, outside of the checkout, on every Python that is here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from repro.engines import indexes, pythons, wheels
from repro.engines.host import host_cell
from repro.errors import ExitCode

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
HERE = [minor for minor in SUPPORTED if pythons.find(minor)]
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
KERNELS = {
    "kernels.py": "def one():\n    return 1\n",
    "test_kernels.py": """\
import random
import kernels


def test_backward():
    assert kernels.one() == 1 and random.random() < 0.7
""",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from the checkout as it is."""
    out = tmp_path_factory.mktemp("dist")
    command = ["build", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(out)]
    run([pythons.uv_program(), *command, str(ROOT)], cwd=out)
    (built,) = out.glob("*.whl")
    return built


def run(command, *, cwd, status=0, **more):
    """Run a program to its end; what it printed, and what it said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=600, check=False,
        env={**environment, **more},
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout, done.stderr


@dataclass
class Installed:
    """An environment with the kit in it, and a folder to work in."""

    python: Path
    home: Path

    def repro(self, *arguments, status=0, folder="."):
        """Run a command line outside of the checkout."""
        place = self.home / folder
        place.mkdir(exist_ok=True)
        return run([self.python.with_name("repro"), *arguments], cwd=place, status=status)

    def install(self, *what):
        """Install packages from where pip is told to look."""
        configured = indexes.configured().only_reachable()
        if configured.no_index and not configured.find_links:
            pytest.skip("no package index answers")
        command = [pythons.uv_program(), "pip", "install", "--quiet", "--no-config", "--python", self.python]
        run([*command, *configured.uv_flags(), *what], cwd=self.home, **configured.environment())


def installed(minor: str, wheel: Path, home: Path) -> Installed:
    """A new environment with the wheel and nothing else."""
    base = pythons.find(minor)[0].path
    run([pythons.uv_program(), "venv", "--quiet", "--no-config", "--python", base, home / "venv"], cwd=home)
    made = Installed(home / "venv" / "bin" / "python", home)
    made.install(wheel)
    return made


def test_the_wheel_holds_what_is_needed_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = [
        "git",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "repro",
        "msda_triton",
        "docker",
    ]
    tracked = run(listed, cwd=ROOT)[0].split("\0")
    wanted = {
        f"repro/_resources/{name}" if name.startswith("docker/") else name
        for name in tracked
        if name and (ROOT / name).is_file()
    }
    assert {name for name in names if ".dist-info/" not in name} == wanted
    assert "repro/stacks.yaml" in names
    assert {name.split("/")[-1] for name in names - wanted} >= {"METADATA", "LICENSE", "entry_points.txt"}


@pytest.mark.parametrize("minor", HERE)
def test_installed_outside_of_the_checkout(minor, wheel, tmp_path):
    """Help, an empty folder, a first matrix.yaml, its plan, and what the host engine says without a torch."""
    kit = installed(minor, wheel, tmp_path)
    assert "matrix" in kit.repro("--help")[0]
    assert run([kit.python, "-m", "pip", "--version"], cwd=tmp_path)[0], "the kit needs pip, and brings it"
    _, err = kit.repro("plan", folder="empty", status=ExitCode.USAGE)
    assert "repro init" in err
    assert list((tmp_path / "empty").iterdir()) == []

    plant(tmp_path)
    found = json.loads(kit.repro("init", "--json")[0])
    assert (found["test_file"], found["test"]) == ("test_kernels.py", "test_backward")
    planned = json.loads(kit.repro("plan", "--json", "--engine", "venv")[0])
    assert planned["total"]["cells"] == len(planned["cells"]) > 0
    _, err = kit.repro("matrix", "--engine", "host", status=ExitCode.NOT_READY)
    assert "has no torch and no triton" in err
    assert_complete(kit)


def plant(home: Path) -> None:
    for name, content in KERNELS.items():
        (home / name).write_text(content)


def assert_complete(kit: Installed) -> None:
    """What commands read beside their code is there: the Dockerfile, the step, the plugin."""
    code = (
        "from pathlib import Path; from repro.engines.tags import resources, scripts; from repro.run import"
        " install_plugin; scripts(); print(resources()); print(install_plugin(Path('state').absolute()))"
    )
    folder, plugin = run([kit.python, "-c", code], cwd=kit.home)[0].split()
    assert Path(folder).is_relative_to(kit.home)
    own = {path.relative_to(ROOT / "repro" / "trial") for path in (ROOT / "repro" / "trial").rglob("*.py")}
    copied = {path.relative_to(f"{plugin}/repro_trial") for path in Path(plugin).rglob("*.py")}
    assert copied == own


def test_a_matrix_by_the_host_engine(wheel, tmp_path):
    """With torch and triton in the same environment, the installed kit runs trials and counts them."""
    cell = host_cell()
    if not wheels.local_wheel(indexes.configured().find_links, cell) and cell.cuda == "cpu":
        pytest.skip(f"no local wheel of torch {cell.torch}+{cell.cuda}")
    kit = installed(OWN, wheel, tmp_path)
    kit.install(f"torch=={cell.torch}+{cell.cuda}", f"triton=={cell.triton}", "numpy", "pytest")
    plant(tmp_path)
    kit.repro("init")
    arguments = ("--engine", "host", "--trials", "60", "--half-width", "0", "--json")
    told = json.loads(kit.repro("matrix", *arguments)[0])
    (result,) = told["cells"]
    assert (result["state"], result["rate"]["trials"]) == ("done", 60)
    assert 5 <= result["rate"]["failed"] <= 35, "three in ten fail"
    status = json.loads(kit.repro("status", "--json")[0])
    assert len(status[0]["failing_seeds"]) == result["rate"]["failed"]
    kit.repro("report", "--no-script")
    assert (tmp_path / ".repro" / "report" / "report.md").is_file()
