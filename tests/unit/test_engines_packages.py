"""From a cell to pins: which wheel, which index, and what is said when there is none."""

from __future__ import annotations

import platform
import stat
import sys
import zipfile
from dataclasses import replace

import pytest

from repro.cells import Cell
from repro.engines import packages, pythons, resolver, wheels
from repro.engines.bases import resources
from repro.engines.indexes import Indexes
from repro.engines.resolver import Pin
from repro.errors import BuildError

CPU = Cell(python="3.11", torch="2.13.0", triton="3.6.0", cuda="cpu", pinned_triton="3.7.1")
LOCK = """
lock-version = "1.0"
[[packages]]
name = "torch"
version = "2.13.0+cpu"
wheels = [{ url = "file:///wheels/torch-2.13.0%2Bcpu-cp311-cp311-linux_any.whl", hashes = { sha256 = "aa" } }]
[[packages]]
name = "Typing_Extensions"
version = "4.1"
wheels = [{ url = "https://host/typing_extensions-4.1-py3-none-any.whl", hashes = { sha256 = "bb" } }]
[[packages]]
name = "triton"
version = "3.6.0"
"""


@pytest.fixture
def uv(tmp_path, monkeypatch):
    """A uv that notes what it was asked and answers with a lock file, or fails."""
    program = tmp_path / "uv"
    (tmp_path / "lock").write_text(LOCK)
    program.write_text(
        f"""#!{sys.executable}
import pathlib, sys
here = pathlib.Path({str(tmp_path)!r})
with (here / "asked").open("a") as asked:
    asked.write(" ".join(sys.argv[1:]) + "\\n" + pathlib.Path("wanted.in").read_text() + "---\\n")
(here / "overrides").write_text(pathlib.Path("overrides.in").read_text())
if (here / "fails").exists():
    sys.exit((here / "fails").read_text())
pathlib.Path(sys.argv[sys.argv.index("--output-file") + 1]).write_text((here / "lock").read_text())
"""
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(resolver, "uv_program", lambda: str(program))
    return tmp_path


def configure(monkeypatch, **more):
    monkeypatch.setattr(packages.where, "configured", lambda: Indexes(**more))
    monkeypatch.setattr(Indexes, "only_reachable", lambda self, more=(): self)


def test_the_torch_layer_has_no_triton(uv, monkeypatch):
    configure(monkeypatch, no_index=True)
    plan = packages.plan(CPU, ["einops"])
    assert [pin.requirement for pin in plan.torch] == ["torch==2.13.0+cpu", "typing-extensions==4.1"]
    assert [pin.requirement for pin in plan.cell] == ["triton==3.6.0"]
    assert str(plan.torch[0].wheel) == "/wheels/torch-2.13.0+cpu-cp311-cp311-linux_any.whl"
    assert plan.torch[1].wheel is None
    asked = (uv / "asked").read_text()
    assert "--overrides overrides.in" in asked
    assert "--python-version 3.11" in asked
    assert "torch==2.13.0+cpu\ntriton==3.6.0\npytest\neinops\n---" in asked


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The only source of packages; `add(NAME, VERSION, *REQUIREMENTS)` puts a wheel into it."""

    class Folder:
        def add(self, name, version, *requirements):
            rows = [f"Requires-Dist: {requirement}" for requirement in requirements]
            with zipfile.ZipFile(tmp_path / f"{name}-{version}-py3-none-any.whl", "w") as archive:
                about = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *rows, ""]
                archive.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(about))
                archive.writestr(
                    f"{name}-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n"
                )
                archive.writestr(f"{name}-{version}.dist-info/RECORD", "")

    configure(monkeypatch, no_index=True, find_links=(str(tmp_path),))
    return Folder()


HELD = {
    "torch": "2.13.0+cu130",
    "triton": "3.7.1",
    "pytest": "8.0",
    "nccl": "2.28",
    "cublas": "13.1",
    "numpy": "2.0",
}


def requirements(pins):
    return sorted(pin.requirement for pin in pins)


def test_a_base_that_holds_torch_is_not_asked_for_it_again(folder):
    folder.add("triton", "3.6.0", "cublas")
    plan = packages.plan(replace(CPU, cuda="cu130"), (), HELD)
    assert plan.torch == ()
    assert requirements(plan.cell) == ["triton==3.6.0"]


def test_another_torch_needs_the_wheels_alone_that_the_base_has_not_in_its_versions(folder):
    folder.add(
        "torch", "2.12.1", "cublas<=13.2,>=13.1", "nccl==2.29", "numpy ; extra == 'all'", "triton==3.7.1"
    )
    folder.add("nccl", "2.29", "cublas<13.3")
    folder.add("triton", "3.6.0")
    plan = packages.plan(replace(CPU, torch="2.12.1", cuda="cu130"), (), HELD)
    assert requirements(plan.torch) == ["nccl==2.29", "torch==2.12.1"]
    assert requirements(plan.cell) == ["triton==3.6.0"]


def test_another_torch_takes_the_triton_that_the_base_holds(folder):
    folder.add("torch", "2.12.1", "triton==3.7.2")
    plan = packages.plan(replace(CPU, torch="2.12.1", triton="3.7.1", cuda="cu130"), (), HELD)
    assert requirements(plan.torch) == ["torch==2.12.1"]
    assert plan.cell == ()


def test_what_a_missing_package_needs_in_another_version_is_missing_too(folder):
    folder.add("triton", "3.6.0")
    folder.add("einops", "1.0", "numpy>=2.1")
    with pytest.raises(BuildError, match="numpy"):
        packages.plan(replace(CPU, cuda="cu130"), ["einops"], HELD)
    folder.add("numpy", "2.3")
    plan = packages.plan(replace(CPU, cuda="cu130"), ["einops"], HELD)
    assert requirements(plan.cell) == ["einops==1.0", "numpy==2.3", "triton==3.6.0"]


def test_which_requirement_asks_for_which_build(monkeypatch, tmp_path):
    configure(monkeypatch)

    def torch(cuda, **more):
        cell = Cell(python="3.11", torch="2.11.0", triton="3.6.0", cuda=cuda, pinned_triton="3.6.0")
        return resolver.Resolver(cell, Indexes(**more)).torch

    assert torch("cu130") == "torch==2.11.0"
    assert torch("cu126") == "torch==2.11.0+cu126"
    assert torch("cpu") == "torch==2.11.0+cpu"
    (tmp_path / f"torch-2.11.0+cu130-cp311-cp311-linux_{platform.machine()}.whl").touch()
    assert torch("cu130", find_links=(str(tmp_path),)) == "torch==2.11.0+cu130"
    assert torch("cu130", find_links=(f"file://{tmp_path}",)) == "torch==2.11.0+cu130"


def test_pytorchs_own_index_is_asked_for_builds_that_pypi_lacks(monkeypatch):
    asked = []
    monkeypatch.setattr(Indexes, "only_reachable", lambda self, more=(): asked.append(tuple(more)) or self)
    for cuda in ("cu130", "cu126"):
        resolver.Resolver(
            Cell(python="3.11", torch="2.11.0", triton="3.6.0", cuda=cuda, pinned_triton="3.6.0"), Indexes()
        )
    assert asked == [(), ("https://download.pytorch.org/whl/cu126",)]


def test_no_wheel_anywhere_says_where_it_would_come_from(uv, monkeypatch):
    configure(monkeypatch)
    (uv / "fails").write_text(
        "  × No solution found when resolving dependencies:\n"
        "  ╰─▶ Because there is no version of torch==2.13.0+cpu and you require\n"
        "      torch==2.13.0+cpu, we can conclude that your requirements are\n      unsatisfiable.\n"
    )
    with pytest.raises(BuildError) as caught:
        packages.plan(CPU)
    error = caught.value
    assert error.what == (
        "torch2.13.0-triton3.6.0-cpu-py311: no set of packages fits: Because there is no version of "
        "torch==2.13.0+cpu and you require torch==2.13.0+cpu, we can conclude that your requirements are "
        "unsatisfiable."
    )
    assert error.why == (
        "the cpu build of torch comes from https://download.pytorch.org/whl/cpu, which does not answer from "
        "here, and no folder of wheels has it"
    )
    assert error.next_step == (
        "put its wheel for Python 3.11 into a folder and name that in PIP_FIND_LINKS, or leave the cell out "
        "with --only"
    )


def test_no_index_at_all_has_an_error_of_its_own(uv, monkeypatch):
    configure(monkeypatch, no_index=True)
    (uv / "fails").write_text("error: nothing")
    cell = Cell(python="3.11", torch="2.11.0", triton="3.6.0", cuda="cu130", pinned_triton="3.6.0")
    with pytest.raises(BuildError) as caught:
        packages.plan(cell)
    assert "no package index answers from here" in caught.value.why


def test_what_is_asked_for_by_name():
    cell = Cell(
        python="3.11", torch="2.8.0", triton="3.4.0", cuda="cu128", pinned_triton="3.4.0", ptxas="12.6.85",
        packages=("numpy<2.4",),
    )  # fmt: skip
    assert packages.direct_requirements(cell, ["b", "a"]) == [
        "torch==2.8.0+cu128", "triton==3.4.0", "pytest", "nvidia-cuda-nvcc-cu12==12.6.85", "numpy<2.4",
        "a", "b",
    ]  # fmt: skip


@pytest.mark.parametrize(("method", "unreadable"), [(zipfile.ZIP_LZMA, True), (zipfile.ZIP_DEFLATED, False)])
def test_lzma_wheels_are_told_apart(tmp_path, method, unreadable):
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w", method) as archive:
        archive.writestr("a", "a" * 1000)
    assert wheels.unreadable_by_uv(wheel) is unreadable
    (tmp_path / "copies").mkdir()
    copy = wheels.readable(wheel, tmp_path / "copies")
    assert (copy == wheel) is not unreadable
    assert not wheels.unreadable_by_uv(copy)
    assert zipfile.ZipFile(copy).read("a") == b"a" * 1000


def test_pins_read_as_requirements():
    assert Pin(name="triton", version="3.6.0").requirement == "triton==3.6.0"


def test_this_interpreter_is_found():
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    here = pythons.look_at(pythons.Path(sys.executable))
    assert here is not None
    assert here.minor == minor
    assert "pytest" in here.held
    assert pythons.look_at(pythons.Path("/no/such/python")) is None
    assert minor in pythons.versions_here()
    assert all(not found.in_venv for found in pythons.find(minor))


def wheel_of(folder, method):
    """A wheel of triton with a program in it."""
    folder.mkdir()
    wheel = folder / "triton-3.6.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", method) as archive:
        archive.writestr("triton/_C/libtriton.so", b"x" * (2 << 20))
        archive.writestr("triton/backends/nvidia/bin/ptxas", b"program")
        archive.writestr("triton/profiler/proton.py", b"left out")
        archive.writestr("triton-3.6.0.dist-info/METADATA", "Name: triton\nVersion: 3.6.0\n")
        archive.writestr("triton-3.6.0.dist-info/RECORD", "")
    return wheel


def test_the_resolver_sees_the_metadata_of_wheels_that_uv_cannot_read(tmp_path):
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    wheel_of(plain, zipfile.ZIP_DEFLATED)
    wheel = wheel_of(packed, zipfile.ZIP_LZMA)
    with wheels.for_resolver([str(plain), f"file://{packed}", "https://x/links"]) as (places, originals):
        assert (places[0], places[2]) == (str(plain), "https://x/links")
        [stand_in] = resolver.Path(places[1]).glob("*.whl")
        assert not wheels.unreadable_by_uv(stand_in)
        with zipfile.ZipFile(stand_in) as archive:
            assert len(archive.namelist()) == 2
        assert originals == {wheel.name: wheel}
    assert not stand_in.exists()


def test_a_slim_wheel_is_still_a_wheel(tmp_path):
    script = resources() / "offline" / "slim_wheel.py"
    code = script.read_text().replace('subprocess.run(["strip"', 'subprocess.run(["true"')
    namespace = {"__name__": "slim_wheel"}
    exec(compile(code, str(script), "exec"), namespace)
    wheel = wheel_of(tmp_path / "in", zipfile.ZIP_DEFLATED)
    slim = namespace["slim"](wheel, tmp_path / "out")
    with zipfile.ZipFile(wheels.readable(slim, tmp_path)) as archive:
        names = archive.namelist()
        record = archive.read("triton-3.6.0.dist-info/RECORD").decode().splitlines()
        assert archive.getinfo("triton/backends/nvidia/bin/ptxas").external_attr >> 16 & 0o111
    assert "triton/profiler/proton.py" not in names
    assert sorted(row.split(",")[0] for row in record) == sorted(names)
