"""An engine in memory: its processes write block files as the plugin would, and die and hang as told."""

from __future__ import annotations

import itertools
import json
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from repro.cells import Cell
from repro.config import Limits, Signature
from repro.engines.base import Exit, Places, Prepared, write_request
from repro.run import Runner, Target
from repro.store import Ledger
from repro.subject import Subject

HANG = "hang"
"""The process goes on without a word."""

DIED = Exit(code=139, signal=11, detail="last words")
LOST = Exit(code=None, infra="the engine went away")


def press_ctrl_c():
    """As a terminal would; `interrupt_main` does not wake a thread that waits."""
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def cell(triton="3.7.1", cuda="cpu"):
    return Cell(python="3.11", torch="2.13.0", triton=triton, cuda=cuda, pinned_triton="3.7.1")


def subject(root, test="test_it"):
    return Subject(
        root=root,
        revision="content-123456789abc",
        origin="kernels",
        commit=None,
        python_path=("src",),
        test_file="tests/test_op.py",
        own_test_file=None,
        test=test,
        requirements=("einops",),
        signature=Signature(exception="ValueError"),
    )


class FakeClock:
    """Seconds that pass when a process is looked at."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@dataclass
class FakeEngine:
    """What it is told, and what it was asked.

    Args:
        trial: what comes of a seed in a cell: an outcome, an event's fields, an Exit or HANG.
        begin: what comes of a process before its first trial: None, an event, an Exit or HANG.
        build: called with the cell that is built.
        keeps: whether inputs of failing trials are kept, as seeds that give them.
        gpu_seen: the GPU that a process sees, given the one it was promised.
    """

    trial: object = lambda cell, seed: "PASSED"
    begin: object = lambda cell: None
    build: object = lambda cell: None
    keeps: bool = False
    clock: FakeClock = field(default_factory=FakeClock)
    gpu_seen: object = lambda given: given
    name: str = "fake"
    requests: list = field(default_factory=list)
    jobs: list = field(default_factory=list)
    builds: list = field(default_factory=list)
    left: list = field(default_factory=list)

    def __post_init__(self):
        self.lock = threading.Lock()
        self.running = set()

    @property
    def seeds(self):
        """The seeds of every process, in the order in which they started."""
        return [request["seeds"] for request in self.requests]

    def checks(self):
        return []

    def present(self, cell, requirements=()):
        return True

    def prepare(self, cell, *, requirements, limits, log, say):
        self.builds.append(cell.id)
        self.build(cell)
        return Prepared(cell=cell, handle="fake", digest="d" * 64, built=True, seconds=1.0)

    def start(self, prepared, job):
        places = Places(
            kit=str(job.kit), subject=str(job.subject), records=str(job.records), cache=str(job.cache)
        )
        with self.lock:
            self.requests.append(json.loads(write_request(job, places).read_text()))
            self.jobs.append(job)
        return FakeProcess(self, prepared.cell, job)

    def sweep(self):
        return self.left


class FakeProcess:
    """A process of the fake engine: does all it can at the first look."""

    def __init__(self, engine, cell, job):
        self.engine, self.cell, self.job = engine, cell, job
        self.ended = None
        self.begun = self.killed = False

    def poll(self):
        if not self.begun:
            self.begun = True
            self.ended = self._work()
        if self.ended is None:
            self.engine.clock.now += 20
        return self.ended

    def kill(self):
        self.killed = True

    def __enter__(self):
        self.engine.running.add(self)
        return self

    def __exit__(self, *exc):
        self.engine.running.discard(self)

    def _work(self):
        first = self.engine.begin(self.cell)
        if isinstance(first, Exit) or first == HANG:
            return None if first == HANG else first
        request = self.job.request
        gpu = self.engine.gpu_seen(request["gpu_model"])
        self._write({"event": "cell", "schema": 1, "imported": ["torch"], "gpu": [{"name": gpu}]})
        if first is not None:
            self._write(first)
            return Exit(code=0)
        for number, seed in zip(itertools.count(request["first_trial"]), request["seeds"], strict=False):
            self._write({"event": "start", "trial": number, "seed": seed})
            came = self.engine.trial(self.cell, seed)
            if came == HANG:
                return None
            if isinstance(came, Exit):
                return came
            event = came if isinstance(came, dict) else {"outcome": came}
            self._write({"event": "end", "trial": number, "seed": seed, "duration": 0.01, **event})
            if event.get("then"):
                return event["then"]
            if self.engine.keeps and event["outcome"] == "FAILED" and request["keep_inputs"]:
                kept = {"path": None, "failed_again": True}
                self._write({"event": "inputs", "trial": number, "seed": seed, **kept})
        self._write({"event": "block_end", "complete": True, "counts": {}, "reason": ""})
        return Exit(code=0)

    def _write(self, event):
        event = {name: value for name, value in event.items() if name != "then"}
        with (self.job.records / "records.jsonl").open("a") as file:
            file.write(json.dumps({**event, "time": time.time()}) + "\n")


@dataclass
class Bench:
    """A runner over a fake engine, and what it leaves in the ledger."""

    runner: Runner
    engine: FakeEngine
    ledger: Ledger
    root: Path
    said: list

    def target(self, cell_=None):
        return Target(cell=cell_ or cell(), subject=subject(self.root))

    def run(self, order, target=None):
        target = target or self.target()
        return self.runner.run(target, self.runner.prepare(target), order)

    @property
    def outcomes(self):
        """What the ledger says of each trial, by seed."""
        return {trial.seed: trial.outcome.value for trial in self.ledger.trials()}

    @property
    def messages(self):
        return {trial.seed: trial.message for trial in self.ledger.trials()}


def bench(home, ledger, engine, **more):
    said = []
    runner = Runner(
        engine=engine,
        ledger=ledger,
        state=home,
        limits=Limits(trial_timeout=60, startup_timeout=300),
        pause=0,
        clock=engine.clock,
        say=said.append,
        **more,
    )
    return Bench(runner, engine, ledger, home, said)
