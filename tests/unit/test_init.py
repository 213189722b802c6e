"""`repro init`: repositories of several shapes get a matrix.yaml that `repro plan` accepts."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from subject_folders import commit, committed, git, write

from repro import cli
from repro.cells import expand
from repro.cli import init as init_command
from repro.cli import plan, workspace
from repro.config import load
from repro.errors import ExitCode
from repro.starting import Machine, candidates
from repro.subject import resolve

ROOT = Path(__file__).parents[2]
CASES = """\
import pytest
CASES = [3]
cases = pytest.mark.parametrize("n", [1])
class torch:
    float16 = object()
"""
BACKWARD = """
import kernels
from torch.testing import assert_close


def test_forward():
    assert kernels.one() == 1


def test_grads_agree():
    x = kernels.points()
    x.sum().backward()
    assert_close(x.grad, x)
"""
CODE = "import einops\n\n\ndef one():\n    return 1\n"
PROJECT = '[project]\nname = "kernels"\ndependencies = ["torch>=2", "einops>=0.8", "click"]\n'
FLAT = {"kernels/__init__.py": CODE, "tests/test_kernels.py": BACKWARD, "pyproject.toml": PROJECT}
SRC = {"src/kernels/__init__.py": CODE, "tests/unit/test_kernels.py": BACKWARD, "pyproject.toml": PROJECT}
BESIDE = {
    "kernels/__init__.py": "",
    "kernels/op.py": CODE,
    "kernels/op_test.py": BACKWARD.replace("import kernels", "from kernels import op as kernels"),
}
SCRIPTS = {
    "kernels.py": CODE,
    "test_kernels.py": BACKWARD,
    "setup.py": "from setuptools import setup\nsetup()\n",
}
SEVERAL = {
    "packages/base/pyproject.toml": '[project]\nname = "base"\n',
    "packages/base/src/base/__init__.py": "",
    "packages/ops/pyproject.toml": PROJECT,
    "packages/ops/src/kernels/__init__.py": "import base\nimport einops\n",
    "packages/ops/tests/test_ops.py": BACKWARD,
    "packages/ops/tests/conftest.py": "",
    "packages/other/pyproject.toml": '[project]\nname = "other"\n',
    "packages/other/other/__init__.py": "",
}
SHAPES = {
    "flat": (FLAT, "tests/test_kernels.py", ["."], ["kernels", "pyproject.toml", "tests"]),
    "src": (SRC, "tests/unit/test_kernels.py", ["src"], ["pyproject.toml", "src", "tests"]),
    "beside": (BESIDE, "kernels/op_test.py", ["."], ["kernels"]),
    "scripts": (SCRIPTS, "test_kernels.py", ["."], ["kernels.py", "setup.py", "test_kernels.py"]),
    "several": (
        SEVERAL,
        "packages/ops/tests/test_ops.py",
        ["packages/base/src", "packages/ops/src"],
        [
            *("packages/base/pyproject.toml", "packages/base/src", "packages/ops/pyproject.toml"),
            *("packages/ops/src", "packages/ops/tests"),
        ],
    ),
}
HERE = Machine(pythons=("3.6", "3.11", "3.13"), cpu_wheels=(("2.11.0", "3.11"), ("2.13.0", "3.11")))


@pytest.fixture
def repro(capsys, tmp_path, monkeypatch):
    """Run a command line in the folder `home`: its status, what it printed, and what it said."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(init_command, "look", lambda: HERE)
    monkeypatch.setattr(workspace, "has_gpu", lambda: False)
    monkeypatch.setattr(plan, "glance", lambda name, **_: ("fake", lambda *_: False))
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)

    def run(*arguments):
        status = cli._guarded(arguments)
        out, err = capsys.readouterr()
        return status, out, err

    return run


def told(repro, *arguments):
    status, out, err = repro("init", "--json", *arguments)
    assert status == 0, err
    return json.loads(out)


@pytest.mark.parametrize("in_git", [True, False], ids=["git", "folder"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(repro, tmp_path, shape, in_git):
    files, test_file, python_path, parts = SHAPES[shape]
    home = tmp_path / "home"
    write(home, files)
    if in_git:
        committed(home)
    found = told(repro)
    assert (found["git"], found["test_file"], found["test"]) == (in_git, test_file, "test_grads_agree")
    assert (found["python_path"], found["files"]) == (python_path, parts)
    assert found["backward"]
    status, out, err = repro("plan")
    assert (status, err) == (0, "")
    assert out.startswith("profile cpu, 3 cells\n")
    assert "torch2.13.0-triton3.7.1-cpu-py311 " in out


@pytest.mark.parametrize("shape", SHAPES)
def test_the_copy_holds_what_the_test_imports(repro, tmp_path, shape):
    """The subject that is copied has the test, and each module that it reaches on its python path."""
    files, test_file, python_path, _ = SHAPES[shape]
    home = tmp_path / "home"
    write(home, files)
    found = told(repro)
    subject = resolve(load(home / "matrix.yaml").subject, state=tmp_path / "state")
    assert (subject.root / test_file).is_file()
    assert list(subject.python_path[: len(python_path)]) == python_path
    for module in found["modules"]:
        places = [subject.root / folder / module for folder in python_path]
        assert any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)
    assert "kernels" in found["modules"]


def test_requirements_are_those_that_the_code_imports(repro, tmp_path):
    write(tmp_path / "home", FLAT)
    write(
        tmp_path / "home",
        {"kernels/io.py": "import yaml\ntry:\n    import apex\nexcept ImportError:\n    apex = 0\n"},
    )
    found = told(repro)
    assert found["requirements"] == ["einops>=0.8"]
    assert (
        "imported and declared nowhere: yaml; name what they need in subject.requirements" in found["notes"]
    )
    assert load(tmp_path / "home" / "matrix.yaml").subject.requirements == ("einops>=0.8",)


def test_what_find_spec_asks_for_is_not_needed_under_an_if(repro, tmp_path):
    """Not even in another file; without such a question a condition says nothing."""
    write(tmp_path / "home", FLAT)
    has = "from importlib.util import find_spec\nHAS = find_spec('apex.amp') is not None\n"
    guarded = "from .has import HAS\nif HAS:\n    import apex\nelif not HAS:\n    import yaml\n"
    write(tmp_path / "home", {"kernels/has.py": has, "kernels/io.py": guarded})
    (note,) = [note for note in told(repro)["notes"] if "declared nowhere" in note]
    assert note.startswith("imported and declared nowhere: yaml;")


SHARED = {
    "kernels/__init__.py": "",
    "tests/__init__.py": "",
    "tests/conftest.py": "from tests.fixtures import points\n",
    "tests/fixtures.py": "import hypothesis\n",
    "tests/other.py": "import never\n",
    "tests/ops/__init__.py": "",
    "tests/ops/near.py": "import yaml\n",
    "tests/ops/test_kernels.py": "from . import near\nfrom shared import sizes\n" + BACKWARD,
    "tools/shared/__init__.py": "",
    "tools/shared/sizes.py": "import tomlkit\nimport packaging\n",
    "pyproject.toml": PROJECT
    + '[dependency-groups]\ndev = ["hypothesis>=6", {include-group = "docs"}]\n'
    + '[tool.pytest.ini_options]\npythonpath = ["tools", "."]\n',
}


def test_modules_that_tests_share_are_followed_and_nothing_to_install(repro, tmp_path):
    write(tmp_path / "home", SHARED)
    found = told(repro)
    assert found["test_file"] == "tests/ops/test_kernels.py"
    assert found["requirements"] == ["hypothesis>=6"]
    assert [note for note in found["notes"] if "nowhere" in note] == [
        "imported and declared nowhere: tomlkit, yaml; name what they need in subject.requirements"
    ]
    assert found["files"] == ["kernels", "pyproject.toml", "tests", "tools/shared"]
    assert found["python_path"] == ["."]


def test_what_the_test_skips_itself_without_is_needed(repro, tmp_path):
    skips = {
        "test_kernels.py": "import pytest\njax = pytest.importorskip('jax.numpy')\n\n\n"
        "def test_other():\n    pytest.importorskip('cupy')\n\n\n"
        "class TestOps:\n    def test_backward(self):\n        pytest.importorskip('autograd')\n"
        "    def test_grad(self):\n        pytest.importorskip('tinygrad')\n",
    }
    write(tmp_path / "home", skips)
    found = told(repro, "--test", "TestOps::test_backward")
    assert "imported and declared nowhere: autograd, jax; " in "\n".join(found["notes"])


def test_an_edit_of_the_matrix_makes_no_new_revision(repro, tmp_path):
    home = tmp_path / "home"
    write(home, FLAT)
    repro("init")
    before = resolve(load(home / "matrix.yaml").subject, state=tmp_path / "state").revision
    (home / "matrix.yaml").write_text((home / "matrix.yaml").read_text().replace("count: 200", "count: 900"))
    assert resolve(load(home / "matrix.yaml").subject, state=tmp_path / "state").revision == before


@pytest.mark.slow
def test_the_kit_itself(repro, tmp_path, monkeypatch):
    target = tmp_path / "home" / "matrix.yaml"
    found = told(repro, "--subject", str(ROOT), "--matrix", str(target))
    assert found["test_file"] == "tests/suite/test_multiscale_deformable_attention.py"
    assert (found["test"], found["modules"]) == ("test_backward", ["msda_triton"])
    status, _, err = repro("plan", "--test", "test_backward[float32-border-False]")
    assert (status, err) == (0, "")


# The target ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "test"),
    [
        ("test_forward", "test_forward"),
        ("test_forward[a-1]", "test_forward[a-1]"),
        ("tests/test_kernels.py::test_forward", "test_forward"),
        ("test_in_class", "TestOp::test_in_class"),
        ("TestOp::test_in_class", "TestOp::test_in_class"),
    ],
)
def test_a_test_by_name(repro, tmp_path, asked, test):
    write(tmp_path / "home", FLAT)
    write(
        tmp_path / "home",
        {"tests/test_more.py": "class TestOp:\n    def test_in_class(self):\n        pass\n"},
    )
    assert told(repro, "--test", asked)["test"] == test


def test_a_test_that_is_not_there(repro, tmp_path):
    write(tmp_path / "home", FLAT)
    status, out, err = repro("init", "--test", "test_fordward")
    assert (status, out) == (ExitCode.USAGE, "")
    assert err == (
        "error: there is no test `test_fordward` in the repository's test files\n"
        "  why:  the nearest are `test_forward`, `test_grads_agree`\n"
        "  next: correct --test, or name its file with --test-file\n"
    )
    assert not (tmp_path / "home" / "matrix.yaml").exists()


def test_a_file_that_pytest_would_not_collect(repro, tmp_path):
    write(tmp_path / "home", {"checks/gradients.py": "def test_it():\n    pass\n"})
    found = told(repro, "--test-file", "checks/gradients.py")
    assert (found["test_file"], found["files"]) == ("checks/gradients.py", ["checks"])
    assert "test_it does not look like a backward test; name another one with --test" in found["notes"]


FIRST_CASES = {
    '@pytest.mark.parametrize("n", [8, 16])': "[8]",
    '@pytest.mark.parametrize("n", [-1.5, 2])': "[-1.5]",
    '@pytest.mark.parametrize("n, x", [(8, "border")])': "[8-border]",
    '@pytest.mark.parametrize("x", [True])\n@pytest.mark.parametrize("n", [torch.float16])': "[n0-True]",
    '@pytest.mark.parametrize("x", [1], ids=["one"])': "[one]",
    '@pytest.mark.parametrize("x", [pytest.param(1, id="uno")])': "[uno]",
    '@pytest.mark.parametrize("x", [(1, 2)])': "[x0]",
    '@pytest.mark.parametrize("x", [None])\n@pytest.mark.skipif(False, reason="no")': "[None]",
    '@pytest.mark.parametrize("x", CASES)': None,
    "@cases": None,
    "": "",
}


@pytest.mark.slow
def test_the_case_is_the_first_one_that_pytest_collects(tmp_path):
    """Checked against pytest itself; None where the source does not tell."""
    tests = []
    for number, decorators in enumerate(FIRST_CASES):
        arguments = [name for name in "nx" if f'"{name}' in decorators or f", {name}" in decorators]
        arguments = ["n"] if decorators == "@cases" else arguments
        tests.append(f"{decorators}\ndef test_{number}({', '.join(arguments)}):\n    pass\n")
    write(tmp_path, {"test_it.py": CASES + "\n".join(tests)})
    told = {found.name: found for found in candidates.tests_of(tmp_path, "test_it.py")}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "test_it.py"]
    listed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    for number, case in enumerate(FIRST_CASES.values()):
        first = re.search(rf"::(test_{number}(?:\[.*)?)$", listed, re.MULTILINE).group(1)
        assert (told[f"test_{number}"].case is None) == (case is None)
        assert case is None or told[f"test_{number}"].test == first == f"test_{number}{case}"


def test_a_case_that_cannot_be_told_is_a_note(repro, tmp_path):
    write(tmp_path / "home", {"test_it.py": f"{CASES}\n@cases\ndef test_backward(n):\n    pass\n"})
    found = told(repro)
    assert found["test"] == "test_backward"
    assert any("may have parameters" in note for note in found["notes"])


# What is there already ----------------------------------------------------------------------------------


def test_a_file_that_is_there_is_kept(repro, tmp_path):
    home = tmp_path / "home"
    write(home, {**FLAT, "matrix.yaml": "mine\n"})
    status, out, err = repro("init")
    assert (status, out) == (ExitCode.USAGE, "")
    assert err == (
        "error: matrix.yaml is there already\n"
        "  why:  it may hold what you wrote by hand\n"
        "  next: `repro plan` shows what it means; `repro init --force` replaces it\n"
    )
    assert (home / "matrix.yaml").read_text() == "mine\n"
    assert repro("init", "--force")[0] == 0
    assert "cpu" in load(home / "matrix.yaml").profiles
    assert sorted(path.name for path in home.iterdir()) == [
        "kernels",
        "matrix.yaml",
        "pyproject.toml",
        "tests",
    ]


def test_a_link_that_leads_nowhere_is_there_too(repro, tmp_path):
    write(tmp_path / "home", FLAT)
    (tmp_path / "home" / "matrix.yaml").symlink_to("elsewhere.yaml")
    assert repro("init")[0] == ExitCode.USAGE
    assert not (tmp_path / "home" / "elsewhere.yaml").exists()


def test_from_a_folder_inside(repro, tmp_path, monkeypatch):
    home = tmp_path / "home"
    write(home, FLAT)
    committed(home)
    monkeypatch.chdir(home / "tests")
    status, out, _ = repro("init")
    assert status == 0
    assert out.endswith(f"wrote {home}/matrix.yaml; next: cd {home} && repro plan\n")
    assert load(home / "matrix.yaml").subject.test_file == "tests/test_kernels.py"


def test_files_that_git_ignores_are_no_tests(repro, tmp_path):
    home = tmp_path / "home"
    write(home, {**FLAT, ".gitignore": "build/\n.repro/\n", "build/test_backward.py": BACKWARD})
    git(home, "init", "-q")
    commit(home)
    found = told(repro)
    assert found["test_file"] == "tests/test_kernels.py"
    assert not any("gitignore" in note for note in found["notes"])


def test_names_that_yaml_would_read_otherwise(repro, tmp_path):
    home = tmp_path / "home"
    write(home, {"yes/no: maybe/test_it.py": "def test_it():\n    pass\n"})
    told(repro, "--test", "test_it[{a: 1, #}]")
    subject = load(home / "matrix.yaml").subject
    assert (subject.test_file, subject.test) == ("yes/no: maybe/test_it.py", "test_it[{a: 1, #}]")


def test_nothing_to_test(repro, tmp_path):
    write(tmp_path / "home", {"kernels/__init__.py": CODE, "tests/test_broken.py": "def test_it(:\n"})
    status, out, err = repro("init")
    assert (status, out) == (ExitCode.USAGE, "")
    assert err == (
        "error: there is no test here that could be the target\n"
        "  why:  no file named test_*.py or *_test.py has a function named test_*\n"
        "  next: write one test that fails now and then, or name where it is: repro init --test-file FILE\n"
    )


NEEDS_A_MATRIX = (
    *("plan", "doctor", "build", "matrix", "bisect", "replay", "inspect", "diagnose", "minimize", "kernels"),
    *("factors", f"debug --commands {__file__}", "verify-fix --ref main", "export --github-matrix"),
)


@pytest.mark.parametrize("command", NEEDS_A_MATRIX)
def test_every_command_names_init_in_an_empty_folder(repro, tmp_path, command):
    status, out, err = repro(*command.split())
    assert (status, out) == (ExitCode.USAGE, "")
    assert err == (
        "error: there is no matrix.yaml here\n"
        "  why:  it says which test is run, and in which versions\n"
        "  next: `repro init` writes one for the repository that you stand in; or name one with --matrix\n"
    )
    assert list((tmp_path / "home").iterdir()) == []


# The machine --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "gpu", "cpu"),
    [
        (HERE, ("3.11", "2.15.0", "default"), ("3.11", "2.13.0")),
        (
            Machine(pythons=("3.12",), gpus=1, driver="580.65.06"),
            ("3.12", "2.15.0", "default"),
            ("3.12", "2.15.0"),
        ),
        (
            Machine(pythons=("3.12",), gpus=1, driver="550.54.15"),
            ("3.12", "2.14.1", "cu126"),
            ("3.12", "2.15.0"),
        ),
        (Machine(pythons=("3.9",)), ("3.9", "2.8.0", "default"), ("3.9", "2.8.0")),
        (Machine(pythons=("3.13", "3.14")), ("3.13", "2.15.0", "default"), ("3.13", "2.15.0")),
        (Machine(pythons=()), ("3.12", "2.15.0", "default"), ("3.12", "2.15.0")),
        (Machine(pythons=("3.12",), cpu_wheels=()), ("3.12", "2.15.0", "default"), ("3.12", "2.15.0")),
    ],
)
def test_stacks_of_machines(repro, tmp_path, monkeypatch, machine, gpu, cpu):
    """Python, newest torch and build of both profiles; every cell of either can exist."""
    monkeypatch.setattr(init_command, "look", lambda: machine)
    write(tmp_path / "home", FLAT)
    told(repro)
    matrix = load(tmp_path / "home" / "matrix.yaml")
    for name, wanted in {"gpu": gpu, "cpu": (*cpu, "cpu")}.items():
        found = expand(matrix, name)
        assert found.cells
        assert not found.excluded
        assert {cell.python for cell in found.cells} == {wanted[0]}
        assert found.cells[-1].torch == wanted[1]
    assert matrix.profiles["gpu"].axes.cuda[0].text == gpu[2]
