"""What a trial in a container may, and may not: subjects that try to break out."""

from __future__ import annotations

import itertools
import json
import os
import sys
import textwrap
import time
from pathlib import Path

import pytest

from repro.cells import Cell
from repro.engines import builders
from repro.engines.base import Exit, GpuMode, Job, Limits, Prepared
from repro.engines.bases import resources
from repro.engines.client import connect
from repro.engines.docker import DockerEngine
from repro.engines.images import LABEL
from repro.engines.nvidia import GpuHost
from repro.engines.process import run_logged
from repro.engines.pythons import find
from repro.errors import NotReadyError
from repro.run.settling import settle

pytestmark = [pytest.mark.docker, pytest.mark.slow]
CELL = Cell(python="3.11", torch="2.13.0", triton="3.7.1", cuda="cpu", pinned_triton="3.7.1")
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A bare Python without torch: the jail is the same, and it is made in seconds."""
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = tmp_path_factory.mktemp("image")
    tag = f"repro-jail-test:{os.getpid()}"
    script = str(resources() / "base_from_host.py")
    program = builders.chosen().program
    python = str(find(minor)[0].path)
    command = [sys.executable, script, tag, "--python", python, "--docker", program]
    assert run_logged(command, log=folder / "log", timeout=300).ok
    yield tag
    connect().images.remove(tag, force=True)


@pytest.fixture
def engine(tmp_path):
    return DockerEngine(tmp_path / "state", GpuMode.NONE)


class Trial:
    """Runs a piece of code as a trial."""

    def __init__(self, engine, image, folder: Path) -> None:
        self.engine, self.image, self.folder = engine, image, folder

    def job(self, code: str, **more) -> Job:
        subject = self.folder / "subject"
        for name in ("subject", "kit", "records", "cache"):
            (self.folder / name).mkdir(exist_ok=True)
        (subject / "main.py").write_text(textwrap.dedent(code))
        return Job(
            name=f"repro-test-{os.getpid()}-{next(NUMBERS)}",
            kit=self.folder / "kit",
            subject=subject,
            records=self.folder / "records",
            cache=self.folder / "cache",
            request={},
            command=("python3", "main.py"),
            **more,
        )

    @property
    def prepared(self) -> Prepared:
        return Prepared(cell=CELL, handle=self.image, digest="0", built=False, seconds=0)

    def run(self, code: str, timeout: float = 60, **more) -> Exit:
        with self.engine.start(self.prepared, self.job(code, **more)) as running:
            deadline = time.monotonic() + timeout
            while (ended := running.poll()) is None:
                assert time.monotonic() < deadline, "the trial did not end"
                time.sleep(0.05)
        return ended

    def answer(self, code: str, **more) -> object:
        ended = self.run(code, **more)
        assert ended.code == 0, ended
        return json.loads((self.folder / "records" / "answer.json").read_text())


@pytest.fixture
def trial(engine, image, tmp_path):
    yield Trial(engine, image, tmp_path)
    assert ours(engine) == [], "a container was left behind"


def ours(engine) -> list[object]:
    label = f"{LABEL}.state={engine._state_hash}"
    return engine._client.containers.list(all=True, filters={"label": label})


SAY = "import json; json.dump(answer, open('/records/answer.json', 'w'))"


def test_no_network(trial):
    answer = trial.answer(f"""
        import socket
        answer = [name for _, name in socket.if_nameindex()]
        try:
            socket.create_connection(("1.1.1.1", 53), 3)
            answer.append("connected")
        except OSError as error:
            pass
        {SAY}""")
    assert answer == ["lo"]


def test_not_root_and_nothing_to_gain(trial):
    answer = trial.answer(f"""
        import os
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        answer = [os.getuid() != 0, os.getgid() != 0, status["CapEff"].strip(), status["CapBnd"].strip(),
                  status["NoNewPrivs"].strip()]
        try:
            os.setuid(0)
            answer.append("became root")
        except OSError:
            pass
        {SAY}""")
    assert answer == [True, True, "0" * 16, "0" * 16, "1"]


def test_writes_reach_records_cache_and_tmp_only(trial):
    answer = trial.answer(f"""
        answer = {{}}
        for folder in "/ /etc /usr /root /subject /kit /proc/sys /records /cache /tmp".split():
            try:
                open(folder + "/written", "w").close()
                answer[folder] = True
            except OSError:
                answer[folder] = False
        {SAY}""")
    assert [folder for folder, written in answer.items() if written] == ["/records", "/cache", "/tmp"]
    assert not (trial.folder / "subject" / "written").exists()


def test_programs_run_from_tmp(trial):
    """Triton and Inductor load what they compiled from there."""
    answer = trial.answer(f"""
        import subprocess
        open("/tmp/run", "w").write("#!/bin/sh\\necho ran")
        subprocess.run(["chmod", "+x", "/tmp/run"])
        answer = subprocess.run(["/tmp/run"], capture_output=True, text=True).stdout
        {SAY}""")
    assert answer == "ran\n"


def test_forks_meet_a_limit(trial):
    answer = trial.answer(
        f"""
        import os, signal, time
        children = []
        try:
            while len(children) < 500:
                child = os.fork()
                if child == 0:
                    time.sleep(60)
                    os._exit(0)
                children.append(child)
        except OSError:
            pass
        answer = len(children)
        {SAY}
        for child in children:
            os.kill(child, signal.SIGKILL)""",
        limits=Limits(pids=40),
    )
    assert 10 < answer < 40


def test_memory_is_told_from_a_timeout(trial):
    ended = trial.run(
        """
        held = []
        while True:
            held.append(bytearray(b"x" * (8 << 20)))""",
        limits=Limits(memory=128 << 20),
    )
    assert ended.out_of_memory
    assert (ended.code, ended.signal) == (137, 9)


def test_running_for_ever_is_ended(trial):
    code = """
        import signal, subprocess, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        time.sleep(1000)"""
    with trial.engine.start(trial.prepared, trial.job(code)) as running:
        time.sleep(1)
        assert running.poll() is None
        running.kill()
        while (ended := running.poll()) is None:
            time.sleep(0.05)
    assert ended.signal == 9
    assert not ended.out_of_memory


def test_a_crash_tells_its_signal_and_last_words(trial):
    ended = trial.run("import os; print('last words', flush=True); os.kill(os.getpid(), 11)")
    assert (ended.code, ended.signal) == (139, 11)
    assert "last words" in ended.detail
    assert "last words" in (trial.folder / "records" / "output.log").read_text()


def test_records_and_caches_are_where_the_request_says(trial):
    code = f"""
        import os
        import json
        answer = [json.load(open("/records/request.json"))["root"],
                  os.environ["TRITON_CACHE_DIR"], os.environ["HOME"], os.environ["TRITON_INTERPRET"],
                  os.getcwd(), os.environ["PYTHONPATH"]]
        {SAY}"""
    answer = trial.answer(code, python_path=(".", "src"))
    assert answer == ["/subject", "/cache/triton", "/tmp", "1", "/subject", "/kit:/subject:/subject/src"]


def test_a_test_file_of_the_users_own_is_seen(trial, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "test_mine.py").write_text("mine = 1")
    code = f"answer = open('/extra/test_mine.py').read()\n{SAY}"
    assert trial.answer(code, test_file=tmp_path / "own" / "test_mine.py") == "mine = 1"


@pytest.mark.parametrize("mode", [GpuMode.TOOLKIT, GpuMode.CDI, GpuMode.DEVICES, GpuMode.AUTO])
def test_a_refused_gpu_leaves_nothing_behind(image, tmp_path, mode):
    """Whether the engine or the kit refuses: one error that names the fix, and no container."""
    host = GpuHost(dev=tmp_path, cdi=())
    engine = DockerEngine(tmp_path / "state", mode, host=host)
    with pytest.raises(NotReadyError) as caught:
        Trial(engine, image, tmp_path).run("print(1)", gpu=0)
    assert caught.value.next_step
    assert ours(engine) == []


def test_an_image_that_is_gone_is_not_looked_for_elsewhere(engine, tmp_path):
    begin = time.monotonic()
    with pytest.raises(NotReadyError, match="is gone"):
        Trial(engine, "repro-no-such-image:1", tmp_path).run("print(1)")
    assert time.monotonic() - begin < 30


def test_sweep_removes_what_dead_kits_left_and_nothing_else(engine, trial):
    labels = {f"{LABEL}.state": engine._state_hash, f"{LABEL}.host": os.uname().nodename}
    create = engine._client.containers.create
    dead = create(trial.image, "true", labels={**labels, f"{LABEL}.pid": "4194304"})
    other = create(
        trial.image, "true", labels={**labels, f"{LABEL}.state": "another", f"{LABEL}.pid": "4194304"}
    )
    try:
        with engine.start(trial.prepared, trial.job("import time; time.sleep(100)")) as running:
            removed = engine.sweep()
            assert removed == [f"container {dead.name}"]
            assert running.poll() is None
        assert engine._client.containers.get(other.id)
    finally:
        other.remove()


def test_an_engine_that_goes_away_is_infrastructure(trial):
    """Not the test's fault: the trial is run again."""
    with trial.engine.start(trial.prepared, trial.job("import time; time.sleep(100)")) as running:
        running._container.remove(force=True)
        ended = running.poll()
    assert ended.infra
    assert ended.code is None


def test_links_in_the_records_lead_to_no_file_of_the_host(trial, tmp_path):
    """Out here they would lead anywhere, and the kit may write wherever its user may."""
    secret = tmp_path / "secret"
    secret.write_text("untouched")
    trial.run(f"""
        import os
        for name in ("output.log", "records.jsonl"):
            os.symlink({str(secret)!r}, "/records/" + name)
        print("alias sudo=evil", flush=True)
        os._exit(3)""")
    settle(trial.folder / "records" / "records.jsonl", Exit(code=3, detail="alias sudo=evil"), None)
    assert secret.read_text() == "untouched"
    assert "evil" in (trial.folder / "records" / "output.log").read_text()


def test_what_was_asked_of_a_trial_cannot_be_rewritten(trial):
    """Its cell, revision and seeds are what its records count for."""
    answer = trial.answer(f"""
        import os
        answer = []
        for change in (lambda p: open(p, "w"), os.unlink, lambda p: os.rename(p, p + "2"),
                       lambda p: os.rename("/records/forged", p), lambda p: os.chmod(p, 0o777)):
            open("/records/forged", "w").close()
            try:
                change("/records/request.json")
                answer.append("changed")
            except OSError:
                pass
        {SAY}""")
    assert answer == []
