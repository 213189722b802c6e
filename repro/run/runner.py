"""Runs orders in cells, process after process, and leaves the records in the ledger.

A block is one process that runs many trials and appends what happened to its own file. The kit watches that
file from outside: a process that dies or hangs costs the trial it was in, and a new process goes on after it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from repro import __version__
from repro.cells import Cell
from repro.engines.base import Engine, Exit, Job, Limits, Prepared, Running, Say
from repro.errors import BuildError
from repro.run.order import Interrupted, Order, Ran, Target
from repro.run.plugin import install_plugin
from repro.run.pulse import Pulse
from repro.run.settling import Settled, settle
from repro.store import Ledger, Series
from repro.store.sound import read_sound_events
from repro.trial.records import SCHEMA, Event, Mode

DEATHS_IN_A_ROW = 10
"""Processes that die one after the other, each in its first trial, before a cell is given up."""

FURTHER_TRIES = 2
"""Of a trial that could not run for a reason beside the test, before a cell is given up."""

_BLOCKS = "blocks"
INGEST_SECONDS = 0.5
POLL_SECONDS = 0.05


@dataclass
class Runner:
    """Runs trials in cells and leaves the records in the ledger.

    Args:
        engine: where cells run.
        ledger: takes the records.
        state: the run's folder; evidence goes to `blocks/`, kernel caches to `cache/`.
        limits: on every trial process.
        gpu_model: model of the GPUs, as the driver names it; recorded where a cell uses one.
        stop: once set, running trials are ended and `Interrupted` is raised.
        pause: seconds to wait before a trial that could not run is tried again.
        clock: seconds, monotonic.
        say: takes lines of progress.
    """

    engine: Engine
    ledger: Ledger
    state: Path
    limits: Limits
    gpu_model: str = ""
    stop: threading.Event = field(default_factory=threading.Event)
    pause: float = 2.0
    clock: Callable[[], float] = time.monotonic
    say: Say = print

    def prepare(self, target: Target) -> Prepared:
        """Build the cell's image or environment unless it is there.

        Raises:
            BuildError: see `Engine.prepare`; recorded in the ledger first.
        """
        cell, began = target.cell, self.clock()
        log = self.state / "logs" / f"build-{cell.id}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        try:
            prepared = self.engine.prepare(
                cell, requirements=target.subject.requirements, limits=self.limits, log=log, say=self.say
            )
        except BuildError as error:
            self.ledger.record_build(cell.id, "", False, self.clock() - began, error.what)
            raise
        if prepared.built:
            self.ledger.record_build(cell.id, prepared.digest, True, prepared.seconds)
        return prepared

    def run(
        self, target: Target, prepared: Prepared, order: Order, heard: Callable[[], None] = lambda: None
    ) -> Ran:
        """Run an order to its end, over as many processes as it takes.

        Args:
            heard: called whenever new records have reached the ledger.

        Raises:
            Interrupted: `stop` was set; what had finished is in the ledger.
            NotReadyError: the engine or the GPU is not there.
        """
        pending, ended, deaths, troubles, busy = list(order.seeds), 0, 0, 0, 0.0
        folders: list[Path] = []
        while pending:
            folders.append(self._new_folder(order.aside or _BLOCKS))
            block = self._block(target, prepared, _part(order, pending, ended), folders[-1], heard)
            ended, pending, busy = ended + block.ended, pending[block.ended :], busy + block.busy
            deaths = deaths + 1 if block.died and block.ended <= 1 else 0
            troubles = (0 if block.ended else troubles) + bool(block.infra)
            reason = _why_give_up(block, 0 if order.mode is Mode.FRESH else deaths, troubles)
            if reason or order.once:
                why = reason or block.infra or block.died
                return Ran(ended=ended, gave_up=why, infra=bool(block.infra), busy=busy, folders=(*folders,))
            if block.infra:
                self.say(f"{target.cell.id}: {block.infra}; trying again")
                self._rest()
        return Ran(ended=ended, busy=busy, folders=(*folders,))

    def series(
        self, cell: Cell, revision: str, test: str, *, gpu: int | None, mode: Mode = Mode.SEEDS
    ) -> Series:
        """Under which the ledger keeps trials that this runner runs.

        Args:
            revision: of the subject.
            test: pytest's name of the target test.
            gpu: index of the GPU that they use, or None; any, where several are used.
        """
        model = self.gpu_model if cell.on_gpu and gpu is not None else ""
        return Series(cell=cell.id, revision=revision, test=test, mode=mode, gpu=model)

    def list_tests(self, target: Target, prepared: Prepared, pattern: str) -> list[str]:
        """The ids inside the test file that a name or a glob means, in a process of their own.

        Raises:
            Interrupted: `stop` was set.
        """
        folder = self._new_folder()
        job = self.job(folder, target, prepared, Order(seeds=(), keep_inputs=0))
        job = replace(job, request={**job.request, "test": pattern, "expand": "list"})
        with self.engine.start(prepared, job) as running:
            self._watch(running, folder, lambda: None)
        listed = [
            event for event in read_sound_events(folder / "records.jsonl") if event["event"] == Event.TESTS
        ]
        return [str(name) for event in listed for name in event["ids"]]

    def recover(self) -> None:
        """Take in what a run that was killed had recorded, and end what it left running."""
        for name in self.engine.sweep():
            self.say(f"removed {name}, left behind by a run that was killed")
        self.ledger.catch_up()

    def job(self, folder: Path, target: Target, prepared: Prepared, order: Order) -> Job:
        """What the engine has to start for an order.

        Args:
            folder: takes the records; exists.
        """
        cell, subject = target.cell, target.subject
        cache = order.cache or self.state / "cache" / prepared.digest[:12] / subject.revision[:24]
        cache.mkdir(parents=True, exist_ok=True)
        return Job(
            name=f"repro-{folder.name}",
            kit=install_plugin(self.state),
            subject=subject.root,
            test_file=subject.own_test_file,
            records=folder,
            cache=cache,
            inputs=next((path.parent for path in order.replay.values()), None),
            python_path=subject.python_path,
            env=dict(cell.env + order.env),
            gpu=order.gpu,
            limits=self.limits,
            terminal=order.terminal,
            request={
                "schema": SCHEMA,
                "kit": __version__,
                "block": folder.name,
                "engine": self.engine.name,
                "digest": prepared.digest,
                "cell": cell.id,
                "subject": subject.revision,
                "test_file": subject.test_file,
                "test": subject.test,
                "mode": order.mode.value,
                "seeds": list(order.seeds),
                "first_trial": order.first_trial,
                "gpu_model": self.gpu_model if order.gpu is not None else "",
                "keep_inputs": order.keep_inputs,
                "replay": {str(seed): path.name for seed, path in order.replay.items()},
                "signature": asdict(subject.signature),
                **order.extra,
            },
        )

    # One block -----------------------------------------------------------------------------------------

    def _block(
        self, target: Target, prepared: Prepared, order: Order, folder: Path, heard: Callable[[], None]
    ) -> Settled:
        if self.stop.is_set():
            raise Interrupted
        job = self.job(folder, target, prepared, order)
        with self.engine.start(prepared, job) as running:
            exit_, timed_out = self._watch(running, folder, heard)
        block = settle(folder / "records.jsonl", exit_, timed_out, order.asked)
        self._take_in(folder)
        heard()
        return block

    def _watch(
        self, running: Running, folder: Path, heard: Callable[[], None]
    ) -> tuple[Exit | None, float | None]:
        """Wait for the process; end it where a trial takes too long. The exit, or the limit it ran into."""
        pulse, told = Pulse(folder / "records.jsonl", self.limits, self.clock), self.clock()
        while (exit_ := running.poll()) is None:
            if self.stop.wait(POLL_SECONDS):
                running.kill()
                self._take_in(folder)
                raise Interrupted
            if pulse.beats() and self.clock() - told > INGEST_SECONDS:
                told = self.clock()
                self._take_in(folder)
                heard()
            if pulse.silent > pulse.limit:
                running.kill()
                return None, pulse.limit
        return exit_, None

    def _rest(self) -> None:
        if self.stop.wait(self.pause):
            raise Interrupted

    def _take_in(self, folder: Path) -> None:
        if folder.parent.name == _BLOCKS:
            self.ledger.ingest(folder)

    def _new_folder(self, name: str = _BLOCKS) -> Path:
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        folder = self.state / name / f"{stamp}-{os.urandom(4).hex()}"
        folder.mkdir(parents=True)
        return folder


def _part(order: Order, pending: Sequence[int], ended: int) -> Order:
    """What is left of an order, as far as one process takes it."""
    size = 1 if order.mode is Mode.FRESH else len(pending)
    return replace(order, seeds=pending[:size], first_trial=order.first_trial + ended)


def _why_give_up(block: Settled, deaths: int, troubles: int) -> str:
    if block.fatal:
        return block.fatal
    if troubles > FURTHER_TRIES:
        return f"{block.infra}; tried {troubles} times"
    if deaths >= DEATHS_IN_A_ROW:
        return f"{deaths} processes died in a row, each in its first trial; the last: {block.died}"
    return ""
