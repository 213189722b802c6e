"""The venv and host engines: the same job as in a container, and nothing left running."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from repro.cells import Cell
from repro.engines import packages
from repro.engines.base import Job, Limits
from repro.engines.host import HostEngine
from repro.engines.process import alive
from repro.engines.resolver import Pin
from repro.engines.venv import VenvEngine
from repro.errors import BuildError, NotReadyError

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
CELL = Cell(python=PYTHON, torch="0.1", triton="0", cuda="cpu", pinned_triton="0")
NUMBERS = itertools.count()


@pytest.fixture
def engine(tmp_path):
    return HostEngine(tmp_path / "state")


@pytest.fixture
def job(tmp_path):
    def make(code: str, **more) -> Job:
        folders = {name: tmp_path / name for name in ("kit", "subject", "records", "cache")}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
        (tmp_path / "subject" / "main.py").write_text(textwrap.dedent(code))
        command = (sys.executable, "main.py")
        return Job(name=f"job-{next(NUMBERS)}", request={}, command=command, **folders, **more)

    return make


def prepare(engine, tmp_path, cell=CELL):
    return engine.prepare(cell, requirements=(), limits=Limits(), log=tmp_path / "build.log", say=print)


def wait(running, seconds: float = 30):
    deadline = time.monotonic() + seconds
    while (ended := running.poll()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return ended


def test_environment_is_the_jobs_own(engine, job, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "not for trials")
    code = """
        import os
        names = "HOME TRITON_CACHE_DIR TORCHINDUCTOR_CACHE_DIR TRITON_INTERPRET CUDA_VISIBLE_DEVICES MINE"
        names += " SECRET_TOKEN"
        print(*[f"{name}={os.environ.get(name)}" for name in names.split()], os.getcwd(), sep="\\n")"""
    with engine.start(prepare(engine, tmp_path), job(code, env={"MINE": "1"})) as running:
        ended = wait(running)
    assert ended.code == 0
    assert ended.detail.splitlines() == [
        f"HOME={tmp_path}/records/tmp/home",
        f"TRITON_CACHE_DIR={tmp_path}/cache/triton",
        f"TORCHINDUCTOR_CACHE_DIR={tmp_path}/cache/inductor",
        "TRITON_INTERPRET=1",
        "CUDA_VISIBLE_DEVICES=",
        "MINE=1",
        "SECRET_TOKEN=None",
        f"{tmp_path}/subject",
    ]
    assert not (tmp_path / "records" / "tmp").exists()


def test_a_crash_tells_its_signal(engine, job, tmp_path):
    with engine.start(prepare(engine, tmp_path), job("import os; os.kill(os.getpid(), 11)")) as running:
        ended = wait(running)
    assert (ended.code, ended.signal, ended.out_of_memory) == (139, 11, False)


def test_memory_is_told_from_a_kill(engine, job, tmp_path):
    code = """
        import time
        held = []
        while True:
            held.append(bytearray(b"x" * (8 << 20)))
            time.sleep(0.01)"""
    with engine.start(prepare(engine, tmp_path), job(code, limits=Limits(memory=100 << 20))) as running:
        ended = wait(running)
    assert ended.out_of_memory
    assert "100 MB are allowed" in ended.detail


def test_forks_meet_a_limit(engine, job, tmp_path):
    code = """
        import os, time
        for _ in range(60):
            if os.fork() == 0:
                time.sleep(60)
        time.sleep(60)"""
    with engine.start(prepare(engine, tmp_path), job(code, limits=Limits(pids=30))) as running:
        ended = wait(running)
    assert ended.signal == 9
    assert "30 are allowed" in ended.detail


ESCAPE = """
    import os, subprocess, time
    child = subprocess.Popen(["sleep", "987"], start_new_session=True)
    print(child.pid, flush=True)
    time.sleep(1000)"""


def escaped(records: Path) -> int:
    deadline = time.monotonic() + 10
    while not (text := (records / "output.log").read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(text.split()[-1])


def test_a_kill_reaches_children_that_left_the_session(engine, job, tmp_path):
    with engine.start(prepare(engine, tmp_path), job(ESCAPE)) as running:
        child = escaped(tmp_path / "records")
        assert alive(child)
        running.kill()
        assert wait(running).signal == 9
    assert not alive(child)


def test_sweep_ends_what_a_killed_kit_left(engine, job, tmp_path):
    """A second kit starts a trial and is killed; the next one finds the trial and ends it."""
    wanted = job(ESCAPE)
    script = f"""
import sys, time
from pathlib import Path
from repro.cells import Cell
from repro.engines.base import Job, Prepared
from repro.engines.host import HostEngine
cell = Cell(python="3.11", torch="0.1", triton="0", cuda="cpu", pinned_triton="0")
at = Path({str(tmp_path)!r})
job = Job(name="left", kit=at / "kit", subject=at / "subject", records=at / "records", cache=at / "cache",
          request={{}}, command={list(wanted.command)!r})
prepared = Prepared(cell=cell, handle=sys.executable, digest="", built=False, seconds=0)
running = HostEngine(at / "state").start(prepared, job)
time.sleep(1000)
"""
    with subprocess.Popen([sys.executable, "-c", script]) as kit:
        deadline = time.monotonic() + 30
        while not (tmp_path / "records" / "output.log").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        child = escaped(tmp_path / "records")
        assert engine.sweep() == []
        kit.send_signal(signal.SIGKILL)
    assert alive(child)
    assert engine.sweep() == ["left"]
    assert not alive(child)
    assert engine.sweep() == []


def test_an_interpreter_that_is_gone(tmp_path, job):
    engine = VenvEngine(tmp_path / "state")
    prepared = prepare(HostEngine(tmp_path / "state"), tmp_path)
    gone = type(prepared)(cell=CELL, handle=str(tmp_path / "gone"), digest="", built=False, seconds=0)
    wanted = job("print(1)")
    wanted = Job(**{**vars(wanted), "command": (str(tmp_path / "gone"), "main.py")})
    with pytest.raises(NotReadyError, match="cannot start"):
        engine.start(gone, wanted)


@pytest.fixture
def small_plan(monkeypatch):
    """A small package in the place of torch: what is tried is the building."""
    cell = Cell(python=PYTHON, torch="2.13.0", triton="3.7.1", cuda="cpu", pinned_triton="3.7.1")
    real = packages.plan(cell)
    pin = next(pin for pin in real.cell if pin.name == "iniconfig")
    plan = packages.Plan(torch=(), cell=(pin,), indexes=real.indexes)
    monkeypatch.setattr(packages, "plan", lambda *_, **__: plan)
    return plan


@pytest.mark.slow
def test_an_environment_is_made_once_and_runs(tmp_path, small_plan, job):
    engine = VenvEngine(tmp_path / "state")
    assert not engine.present(CELL)
    made = prepare(engine, tmp_path)
    again = prepare(engine, tmp_path)
    assert (made.built, again.built, again.digest) == (True, False, made.digest)
    assert engine.present(CELL)
    wanted = job("import iniconfig, sys; print(sys.prefix)")
    wanted = Job(**{**vars(wanted), "command": (made.handle, "main.py")})
    with engine.start(made, wanted) as running:
        ended = wait(running)
    assert ended.detail == str(Path(made.handle).parent.parent)


@pytest.mark.slow
def test_a_failed_environment_is_not_taken_for_a_finished_one(tmp_path, small_plan, monkeypatch):
    engine = VenvEngine(tmp_path / "state")
    bad = Pin(name="pluggy", version="999.0")
    broken = packages.Plan(torch=(), cell=(bad,), indexes=small_plan.indexes)
    monkeypatch.setattr(packages, "plan", lambda *_, **__: broken)
    with pytest.raises(BuildError, match="pluggy==999") as caught:
        prepare(engine, tmp_path)
    assert str(tmp_path / "build.log") in caught.value.next_step
    assert not engine.present(CELL)
    monkeypatch.setattr(packages, "plan", lambda *_, **__: small_plan)
    assert prepare(engine, tmp_path).built


def test_a_python_that_is_not_here(tmp_path, monkeypatch):
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    engine = VenvEngine(tmp_path / "state")
    cell = Cell(python="3.99", torch="2.13.0", triton="3.7.1", cuda="cpu", pinned_triton="3.7.1")
    with pytest.raises(BuildError, match=r"no Python 3\.99 here") as caught:
        prepare(engine, tmp_path, cell)
    assert PYTHON in caught.value.why
    assert "uv python install 3.99" in caught.value.next_step


def test_the_host_engine_says_where_it_differs(engine, tmp_path):
    said: list[str] = []
    engine.prepare(CELL, requirements=(), limits=Limits(), log=tmp_path / "log", say=said.append)
    assert any("torch 0.1 is asked for" in line for line in said)


def test_nothing_of_these_tests_runs_on():
    marker = b"REPRO_JOB=job-"
    left = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if marker in entry.read_bytes() and int(entry.parent.name) != os.getpid():
                left.append(entry.parent.name)
        except OSError:
            continue
    assert left == []
