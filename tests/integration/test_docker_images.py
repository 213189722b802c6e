"""Images: three steps, the same content from every builder, built once; real cells of two Triton releases."""

from __future__ import annotations

import itertools
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from repro.cells import Cell
from repro.engines import builders, packages
from repro.engines.base import GpuMode, Job, Limits
from repro.engines.client import connect
from repro.engines.docker import DockerEngine
from repro.engines.resolver import Pin
from repro.engines.tags import LABEL, base_tag, cell_tag, torch_tag
from repro.errors import BuildError
from repro.stacks import stacks

pytestmark = [pytest.mark.docker, pytest.mark.slow]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
NUMBERS = itertools.count()


def builder_kinds() -> list[str]:
    """Kinds that some docker client on PATH offers."""
    path = os.environ["PATH"]
    return [kind.value for kind in builders.BuilderKind if builders.choose(path, kind.value)]


@pytest.fixture
def cell():
    """A cell that no other test has, whatever it holds."""
    made = Cell(
        python=PYTHON, torch=f"0.{os.getpid()}.{next(NUMBERS)}", triton="0", cuda="cpu", pinned_triton="0"
    )
    yield made
    client = connect()
    for tag in (cell_tag(made, ()), torch_tag(made)):
        if client.images.list(tag):
            client.images.remove(tag, force=True)


@pytest.fixture
def small_plan(monkeypatch):
    """Small packages in the places of torch and triton: what is tried is the building, not the packages."""
    real = packages.plan(
        Cell(python=PYTHON, torch="2.13.0", triton="3.7.1", cuda="cpu", pinned_triton="3.7.1")
    )
    everything = {pin.name: pin for pin in (*real.torch, *real.cell)}
    plan = packages.Plan(
        torch=(everything["mpmath"],),
        cell=(everything["iniconfig"], everything["pluggy"], everything["packaging"]),
        indexes=real.indexes,
    )
    monkeypatch.setattr(packages, "plan", lambda *_, **__: plan)
    return plan


def prepare(engine, cell, tmp_path, **more):
    return engine.prepare(
        cell, requirements=(), limits=more.pop("limits", Limits()), log=tmp_path / "build.log", say=print
    )


def listed(client, image: str) -> str:
    code = (
        "from importlib.metadata import distributions as d; print(*(f'{x.name}=={x.version}' for x in d()))"
    )
    return client.containers.run(image, ["python3", "-c", code], remove=True, network_mode="none").decode()


def dangling(client) -> set[str]:
    return {image.id for image in client.images.list(filters={"dangling": True})}


@pytest.mark.parametrize("kind", builder_kinds())
def test_every_builder_makes_the_same_image_once(kind, cell, small_plan, tmp_path, monkeypatch):
    monkeypatch.setenv(builders.ENVIRONMENT_NAME, kind)
    engine = DockerEngine(tmp_path / "state", GpuMode.NONE)
    before = dangling(engine._client)
    assert not engine.present(cell)
    made = prepare(engine, cell, tmp_path)
    assert made.built
    names = listed(engine._client, made.handle).split()
    expected = {pin.requirement for pin in (*small_plan.torch, *small_plan.cell)}
    assert expected <= set(names)
    assert {name.partition("==")[0] for name in names} - {"pip", "setuptools", "wheel"} == {
        pin.name for pin in (*small_plan.torch, *small_plan.cell)
    }
    labels = engine._client.images.get(made.handle).labels
    assert labels[f"{LABEL}.content"] == made.digest
    assert "org.opencontainers.image.title" in labels

    again = prepare(DockerEngine(tmp_path / "state", GpuMode.NONE), cell, tmp_path)
    assert (again.built, again.handle, again.digest) == (False, made.handle, made.digest)
    assert engine.present(cell)
    assert list((tmp_path / "state" / "tmp").iterdir()) == []
    assert dangling(engine._client) <= before


@pytest.mark.parametrize("kind", builder_kinds())
def test_a_failed_build_says_why_and_leaves_nothing(kind, cell, small_plan, tmp_path, monkeypatch):
    monkeypatch.setenv(builders.ENVIRONMENT_NAME, kind)
    engine = DockerEngine(tmp_path / "state", GpuMode.NONE)
    before = dangling(engine._client)
    bad = Pin(name="pluggy", version="999.0")
    broken = packages.Plan(torch=small_plan.torch, cell=(bad,), indexes=small_plan.indexes)
    monkeypatch.setattr(packages, "plan", lambda *_, **__: broken)
    with pytest.raises(BuildError) as caught:
        prepare(engine, cell, tmp_path)
    assert "pluggy==999.0" in caught.value.what
    assert str(tmp_path / "build.log") in caught.value.next_step
    assert "pluggy==999.0" in (tmp_path / "build.log").read_text()
    assert not engine.present(cell)
    assert list((tmp_path / "state" / "tmp").iterdir()) == []
    assert dangling(engine._client) <= before


def test_a_build_ends_at_its_limit(cell, small_plan, tmp_path):
    engine = DockerEngine(tmp_path / "state", GpuMode.NONE)
    begin = time.monotonic()
    with pytest.raises(BuildError, match="longer than its limit"):
        prepare(engine, cell, tmp_path, limits=Limits(build_timeout=0.5))
    assert time.monotonic() - begin < 60


def test_a_base_image_of_the_users_own(tmp_path, monkeypatch, cell, small_plan):
    engine = DockerEngine(tmp_path / "state", GpuMode.NONE)
    prepare(engine, cell, tmp_path)
    other = Cell(python="3.1", torch=cell.torch, triton="0", cuda="cpu", pinned_triton="0")
    monkeypatch.setenv("REPRO_BASE_IMAGE", base_tag(cell))
    with pytest.raises(BuildError, match=f"has Python {PYTHON}, the cell asks for 3.1"):
        prepare(engine, other, tmp_path)
    monkeypatch.setenv("REPRO_BASE_IMAGE", "repro-no-such-image:1")
    with pytest.raises(BuildError, match="neither here nor can it be pulled"):
        prepare(engine, other, tmp_path)


def test_two_tritons_for_real(tmp_path):
    """Cells that share torch are built side by side, and each imports its own Triton."""
    engine = DockerEngine(tmp_path / "state", GpuMode.NONE)
    known = stacks()
    cells = [
        Cell(
            python=PYTHON,
            torch="2.13.0",
            triton=triton,
            cuda="cpu",
            pinned_triton=known.torch["2.13.0"].triton,
            packages=known.requirements(triton, "cpu"),
        )
        for triton in ("3.6.0", "3.7.1")
    ]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda cell: prepare(engine, cell, tmp_path), cells))
    for prepared in made:
        assert imported(engine, prepared, tmp_path) == f"2.13.0+cpu {prepared.cell.triton}"


def imported(engine, prepared, tmp_path) -> str:
    folders = {
        name: tmp_path / prepared.cell.triton / name for name in ("kit", "subject", "records", "cache")
    }
    for folder in folders.values():
        folder.mkdir(parents=True)
    code = "import torch, triton, pytest; print(torch.__version__, triton.__version__)"
    job = Job(
        name=f"repro-test-{os.getpid()}-{next(NUMBERS)}",
        request={},
        command=("python3", "-c", code),
        **folders,
    )
    with engine.start(prepared, job) as running:
        while (ended := running.poll()) is None:
            time.sleep(0.1)
    assert ended.code == 0, ended
    return ended.detail.splitlines()[-1]
