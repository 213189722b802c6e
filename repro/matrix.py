"""Every cell of a matrix: made, tried over many seeds, stopped when its rate is known well enough."""

from __future__ import annotations

import queue
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Protocol

from repro.cells import Cell
from repro.engines.base import Prepared
from repro.errors import BuildError, NotReadyError, ReproError
from repro.run import KEPT_INPUTS, Interrupted, Order, Runner, Target, build_threads, run_threads
from repro.stats import Rate, Reason, Stopping
from repro.store import Series, Tally
from repro.subject import Subject
from repro.trial.records import Mode, Outcome

BUILDERS = 2
"""Cells that are built at a time; more would fight over the same disk and link."""


class Phase(StrEnum):
    """Where a cell stands."""

    WAITING = "waiting"
    BUILDING = "building"
    READY = "ready"
    RUNNING = "running"
    DONE = "done"
    BROKEN = "broken"
    """It could not be built, or the test could not be run in it."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """How much is tried in each cell.

    Args:
        stopping: how many trials at most, and when a rate is known well enough.
        mode: how trials differ from each other.
        first_seed: trials run the seeds from here on; the same ones in every cell.
        block: trials that share one process.
    """

    stopping: Stopping
    mode: Mode = Mode.SEEDS
    first_seed: int = 0
    block: int = 50

    @property
    def seeds(self) -> Sequence[int]:
        """The seed of every trial, in order."""
        if self.mode is Mode.REPEAT:
            return [self.first_seed] * self.stopping.most
        return range(self.first_seed, self.first_seed + self.stopping.most)


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """What is known of a cell.

    Args:
        rate: of failure with the target signature; over PASSED and FAILED trials alone.
        others: trials with another outcome, by kind.
        note: why it is broken or stopped early, or "".
        gpu: model of the GPU, or "".
        left: seconds until it is done, or None where that cannot be told.
        seconds: wall time that this run spent on it, its build included.
    """

    cell: Cell
    phase: Phase
    rate: Rate
    others: dict[Outcome, int] = field(default_factory=dict)
    note: str = ""
    gpu: str = ""
    left: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _End:
    """What this run brought a cell to, and the error that stopped it."""

    result: CellResult
    error: Exception | None = None


class Reporter(Protocol):
    """Takes news of a run, from several threads."""

    def update(self, result: CellResult) -> None:
        """A cell has come further."""


@dataclass(kw_only=True)
class MatrixRun:
    """One run over the cells of a matrix.

    Args:
        runner: runs the trials.
        subject: code under test.
        goal: how much is tried.
        gpus: indexes of the GPUs to spread cells over; empty for none.
        jobs: cells that run trials at a time.
        report: takes the news.
    """

    runner: Runner
    subject: Subject
    goal: Goal
    report: Reporter
    gpus: Sequence[int] = ()
    jobs: int = 1
    clock: Callable[[], float] = time.monotonic

    def run(self, cells: Sequence[Cell]) -> list[CellResult]:
        """Bring every cell to its goal; one broken cell never stops the others.

        Raises:
            Interrupted: the runner was told to stop.
            NotReadyError: for want of the same thing, such as the engine, no cell could be tried.
        """
        results = {cell.id: self.standing(cell) for cell in cells}
        for result in results.values():
            self.report.update(result)
        for result in self._bring([cell for cell in cells if results[cell.id].phase is Phase.WAITING]):
            results[result.cell.id] = result
        return [results[cell.id] for cell in cells]

    def _bring(self, cells: Sequence[Cell]) -> list[CellResult]:
        """Build the cells and try each as soon as it is there."""
        slots: queue.Queue[int | None] = queue.Queue()
        for index in range(self.jobs):
            slots.put(self.gpus[index % len(self.gpus)] if self.gpus else None)
        with build_threads(BUILDERS) as builders, run_threads(self.runner.stop, self.jobs) as workers:
            work = [builders.submit(self._build, cell, workers, slots) for cell in cells]
            ends = [future.result().result() for future in work]
        errors = [end.error for end in ends if isinstance(end.error, NotReadyError)]
        if errors and len(errors) == len(ends):
            raise errors[0]
        return [end.result for end in ends]

    def standing(self, cell: Cell) -> CellResult:
        """What the ledger holds of a cell: DONE where nothing is left to try, WAITING otherwise."""
        tally = self._tally(cell)
        decision = self.goal.stopping.decide(
            failed=tally.failed, passed=tally.passed, others=sum(tally.others.values())
        )
        phase = Phase.DONE if decision.stop or not self._pending(cell) else Phase.WAITING
        if phase is Phase.DONE and not decision.rate.trials:
            phase = Phase.BROKEN
        note = "" if decision.reason is Reason.ALL_RUN else decision.why
        return CellResult(
            cell=cell,
            phase=phase,
            rate=decision.rate,
            others=dict(tally.others),
            note="" if phase is Phase.WAITING else note,
            gpu=tally.series.gpu,
        )

    # One cell --------------------------------------------------------------------------------------------

    def _build(self, cell: Cell, workers: ThreadPoolExecutor, slots: queue.Queue[int | None]) -> Future[_End]:
        began = self.clock()
        if self.runner.stop.is_set():
            raise Interrupted
        try:
            self.report.update(replace(self.standing(cell), phase=Phase.BUILDING))
            prepared = self.runner.prepare(Target(cell=cell, subject=self.subject))
            self.report.update(replace(self.standing(cell), phase=Phase.READY))
        except Exception as error:
            done: Future[_End] = Future()
            done.set_result(self._broken(cell, error, began))
            return done
        if self.runner.stop.is_set():
            raise Interrupted
        return workers.submit(self._try, prepared, slots, began)

    def _try(self, prepared: Prepared, slots: queue.Queue[int | None], began: float) -> _End:
        gpu = slots.get()
        try:
            result = replace(self._until_done(prepared, gpu), seconds=self.clock() - began)
            self.report.update(result)
        except Exception as error:
            return self._broken(prepared.cell, error, began)
        finally:
            slots.put(gpu)
        return _End(result=result)

    def _broken(self, cell: Cell, error: Exception, began: float) -> _End:
        """The end of a cell that an error stopped; a fault of the kit's leaves its traceback in a file."""
        if isinstance(error, BuildError):
            note, others = f"build failed: {error.what}", Counter({Outcome.BUILD_FAILED: 1})
        elif isinstance(error, ReproError):
            note, others = error.what, Counter()
        else:
            note, others = f"a fault in the kit itself: {error!r}", Counter()
            note += f"; please report it with {self._keep_traceback(cell, error)}"
        result = self.standing(cell)
        result = replace(
            result,
            phase=Phase.BROKEN,
            note=note,
            others=Counter(result.others) + others,
            seconds=self.clock() - began,
        )
        self.report.update(result)
        return _End(result=result, error=error)

    def _keep_traceback(self, cell: Cell, error: Exception) -> Path:
        path = self.runner.state / "logs" / f"bug-{cell.id}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
        return path

    def _until_done(self, prepared: Prepared, gpu: int | None) -> CellResult:
        cell = prepared.cell
        target = Target(cell=cell, subject=self.subject)
        while (result := self.standing(cell)).phase is Phase.WAITING:
            heard = partial(self._heard, cell, self.clock(), result.rate.trials)
            pending = self._pending(cell)
            ran = self.runner.run(target, prepared, self._order(cell, pending, gpu), heard)
            gave_up = ran.gave_up
            if not gave_up and len(self._pending(cell)) == len(pending):
                gave_up = f"its trials did not run on {self._series(cell).gpu or 'the CPU'}"
            if gave_up:
                return replace(self.standing(cell), phase=Phase.BROKEN, note=gave_up)
        return result

    def _order(self, cell: Cell, pending: Sequence[int], gpu: int | None) -> Order:
        """The next trials of a cell: numbers from `pending` that follow each other."""
        goal = self.goal
        first, part = pending[0], pending[: goal.block]
        if goal.mode is Mode.REPEAT:
            part = [number for index, number in enumerate(part) if number == first + index]
        return Order(
            seeds=[goal.seeds[number] for number in part],
            mode=goal.mode,
            gpu=gpu if cell.on_gpu else None,
            first_trial=first,
            keep_inputs=max(0, KEPT_INPUTS - len(self.runner.ledger.kept_inputs(self._series(cell)))),
        )

    def _heard(self, cell: Cell, since: float, before: int) -> None:
        """Tell the news of a running cell, with the time left at the pace of this block."""
        result = self.standing(cell)
        done = result.rate.trials - before
        pace = (self.clock() - since) / done if done > 0 else None
        left = pace * len(self._pending(cell)) if pace is not None else None
        self.report.update(replace(result, phase=Phase.RUNNING, left=left))

    # The ledger ------------------------------------------------------------------------------------------

    def _series(self, cell: Cell) -> Series:
        subject, gpu = self.subject, next(iter(self.gpus), None)
        return self.runner.series(cell, subject.revision, subject.test, gpu=gpu, mode=self.goal.mode)

    def _tally(self, cell: Cell) -> Tally:
        """Outcomes of the seeds that this run is about."""
        seeds = range(self.goal.seeds[0], self.goal.seeds[-1] + 1)
        return self.runner.ledger.tally(self._series(cell), seeds)

    def _pending(self, cell: Cell) -> list[int]:
        """Numbers of the trials that are still to run, in order: indexes into the goal's seeds."""
        series, goal = self._series(cell), self.goal
        if goal.mode is Mode.REPEAT:
            done = self.runner.ledger.done_repetitions(series, goal.first_seed)
            return [number for number in range(len(goal.seeds)) if number not in done]
        done = self.runner.ledger.done_seeds(series)
        return [number for number, seed in enumerate(goal.seeds) if seed not in done]
