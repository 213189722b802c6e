"""(cell, subject) pairs to trials: the one place where engines, plugin and ledger meet.

A block is one process that runs many trials and appends what happened to its own file. The kit watches that
file from outside: a process that dies or hangs costs the trial it was in, and a new process goes on after it.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import repro.trial
from repro import __version__
from repro.cells import Cell
from repro.engines.base import Engine, Exit, Job, Limits, Prepared, Running, Say
from repro.errors import BuildError, NotReadyError
from repro.store import Ledger
from repro.subject import Subject
from repro.trial.reader import read_events
from repro.trial.records import SCHEMA, Event, Mode, Outcome

DEATHS_IN_A_ROW = 5
"""Processes that die one after the other, each in its first trial, before a cell is given up."""

POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is tried: the code under test, in a cell."""

    cell: Cell
    subject: Subject


@dataclass(frozen=True, kw_only=True)
class Order:
    """Trials to run in one target.

    Args:
        seeds: one a trial; with `Mode.REPEAT` the same seed again and again.
        mode: how trials differ from each other.
        gpu: index of the GPU to use, or None.
        first_trial: number of the first trial, where earlier blocks ran the same seed already.
        env: environment variables on top of the cell's own.
    """

    seeds: Sequence[int]
    mode: Mode = Mode.SEEDS
    gpu: int | None = None
    first_trial: int = 0
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How far an order got: trials that ended, and why it stopped before its last one ("" if it did not)."""

    ended: int
    gave_up: str = ""


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop while a trial was running."""


@dataclass
class Runner:
    """Runs trials in cells and leaves the records in the ledger.

    Args:
        engine: where cells run.
        ledger: takes the records.
        state: the run's folder; evidence goes to `blocks/`, kernel caches to `cache/`.
        limits: on every trial process.
        gpu_model: model of the GPUs, as the driver names it; recorded where a cell uses one.
        keep_inputs: failing trials of a block whose random inputs are kept as bits.
        stop: once set, running trials are ended and `Interrupted` is raised.
        clock: seconds, monotonic.
        say: takes lines of progress.
    """

    engine: Engine
    ledger: Ledger
    state: Path
    limits: Limits
    gpu_model: str = ""
    keep_inputs: int = 4
    stop: threading.Event = field(default_factory=threading.Event)
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
        pending, ended, deaths = list(order.seeds), 0, 0
        while pending:
            size = 1 if order.mode is Mode.FRESH else len(pending)
            part = Order(
                seeds=pending[:size],
                mode=order.mode,
                gpu=order.gpu,
                first_trial=order.first_trial + ended,
                env=order.env,
            )
            block = self._block(target, prepared, part, heard)
            ended += block.ended
            pending = pending[block.ended :]
            deaths = deaths + 1 if block.died and block.ended <= 1 else 0
            if block.fatal:
                return Ran(ended=ended, gave_up=block.fatal)
            if deaths >= DEATHS_IN_A_ROW and order.mode is not Mode.FRESH:
                return Ran(ended=ended, gave_up=f"{deaths} processes died in a row; last: {block.died}")
        return Ran(ended=ended)

    def recover(self) -> None:
        """Take in what a run that was killed had recorded, and end what it left running."""
        for name in self.engine.sweep():
            self.say(f"removed {name}, left behind by a run that was killed")
        self.ledger.catch_up()

    # One block -----------------------------------------------------------------------------------------

    def _block(self, target: Target, prepared: Prepared, order: Order, heard: Callable[[], None]) -> _Block:
        folder = self._new_folder()
        job = self._job(folder, target, prepared, order)
        with self.engine.start(prepared, job) as running:
            exit_, timed_out = self._watch(running, folder, heard)
        block = _settle(folder / "records.jsonl", exit_, timed_out)
        self.ledger.ingest(folder)
        heard()
        return block

    def _watch(
        self, running: Running, folder: Path, heard: Callable[[], None]
    ) -> tuple[Exit | None, float | None]:
        """Wait for the process; end it where a trial takes too long. The exit, or the limit it ran into."""
        records = folder / "records.jsonl"
        seen, since, taken = 0, self.clock(), self.clock()
        while (exit_ := running.poll()) is None:
            if self.stop.is_set():
                running.kill()
                self.ledger.ingest(folder)
                raise Interrupted
            now, size = self.clock(), records.stat().st_size if records.exists() else 0
            if size != seen:
                seen, since = size, now
                if now - taken > 0.5:
                    taken = now
                    self.ledger.ingest(folder)
                    heard()
            limit = self.limits.trial_timeout if _begun(records) else self.limits.startup_timeout
            if now - since > limit:
                running.kill()
                return None, limit
            time.sleep(POLL_SECONDS)
        return exit_, None

    def _new_folder(self) -> Path:
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        folder = self.state / "blocks" / f"{stamp}-{os.urandom(4).hex()}"
        folder.mkdir(parents=True)
        return folder

    def _job(self, folder: Path, target: Target, prepared: Prepared, order: Order) -> Job:
        cell, subject = target.cell, target.subject
        cache = self.state / "cache" / prepared.digest[:12] / subject.revision[:24]
        cache.mkdir(parents=True, exist_ok=True)
        return Job(
            name=f"repro-{folder.name}",
            kit=install_plugin(self.state),
            subject=subject.root,
            test_file=subject.own_test_file,
            records=folder,
            cache=cache,
            python_path=subject.python_path,
            env=dict(cell.env + order.env),
            gpu=order.gpu,
            limits=self.limits,
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
                "keep_inputs": self.keep_inputs,
                "signature": asdict(subject.signature),
            },
        )


@dataclass(frozen=True, kw_only=True)
class _Block:
    """What became of one process: trials that ended in it, how it died, what makes going on pointless."""

    ended: int
    died: str = ""
    fatal: str = ""


def install_plugin(state: Path) -> Path:
    """Put the plugin as `repro_trial` into the run's folder, where every engine finds it; its parent folder.

    A copy, so that a run goes on with the plugin it began with, and containers see nothing else of the kit.
    """
    source = Path(repro.trial.__file__).parent
    home = state / "kit" / __version__
    target = home / "repro_trial"
    files = sorted(source.glob("*.py"))
    if not all(_same(file, target / file.name) for file in files):
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            part = target / f".{file.name}.{os.getpid()}.{threading.get_ident()}"
            shutil.copyfile(file, part)
            part.replace(target / file.name)
    return home


def _same(source: Path, copy: Path) -> bool:
    return copy.exists() and copy.read_bytes() == source.read_bytes()


def _begun(records: Path) -> bool:
    """Whether a first trial has begun."""
    if not records.exists():
        return False
    with records.open("rb") as file:
        return b'"start"' in file.read(65536)


def _settle(records: Path, exit_: Exit | None, timed_out: float | None) -> _Block:
    """Read a finished block; give the trial that the process died in its outcome."""
    events = list(read_events(records)) if records.exists() else []
    ended = sum(event["event"] == Event.END for event in events)
    last = events[-1]["event"] if events else ""
    if last in (Event.BLOCK_END, Event.MISSING):
        return _Block(ended=ended, fatal=_missing(events[-1]) if last == Event.MISSING else "")
    outcome, message = _cause(exit_, timed_out)
    begun = next((event for event in reversed(events) if event["event"] == Event.START), None)
    open_trial = begun is not None and not any(
        event["event"] == Event.END and event["trial"] == begun["trial"] for event in events
    )
    if begun is not None and open_trial:
        line = {"event": Event.END, "trial": begun["trial"], "seed": begun["seed"]}
        _append(records, {**line, "outcome": outcome, "message": message, "duration": None})
        fatal = message if outcome is Outcome.INFRA else ""
        return _Block(ended=ended + 1, died=message, fatal=fatal)
    _append(records, {"event": Event.MISSING, "outcome": outcome, "reason": message})
    return _Block(ended=ended, died=message, fatal=message)


def _missing(event: dict[str, object]) -> str:
    return str(event.get("reason") or "the test is not there")


def _cause(exit_: Exit | None, timed_out: float | None) -> tuple[Outcome, str]:
    if exit_ is None:
        return Outcome.TIMED_OUT, f"no sign of life for {timed_out:.0f} s; the process was killed"
    if exit_.infra:
        return Outcome.INFRA, exit_.infra
    how = (
        "ran out of memory"
        if exit_.out_of_memory
        else f"was ended by signal {exit_.signal}"
        if exit_.signal
        else f"ended with status {exit_.code}"
    )
    return Outcome.CRASHED, f"the process {how}" + (f": {exit_.detail}" if exit_.detail else "")


def _append(records: Path, event: dict[str, object]) -> None:
    """Add the kit's own line to a block's evidence, on a line of its own.

    Raises:
        NotReadyError: the disk is full.
    """
    cut = records.exists() and records.stat().st_size > 0 and records.read_bytes()[-1:] != b"\n"
    try:
        with records.open("ab", buffering=0) as file:
            line = json.dumps({**event, "by": "kit", "time": time.time()}).encode()
            file.write((b"\n" if cut else b"") + line + b"\n")
    except OSError as error:
        raise NotReadyError(
            f"cannot record to {records}: {error.strerror}",
            why="the disk is full or the folder is read-only",
            next_step="make room, then run the same command again; it goes on where it stopped",
        ) from None
