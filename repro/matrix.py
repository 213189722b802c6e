"""Every cell of a matrix: made, tried over many seeds, stopped when its rate is known well enough."""

from __future__ import annotations

import queue
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Protocol

from repro.cells import Cell
from repro.engines.base import Prepared
from repro.errors import BuildError, ReproError
from repro.run import Interrupted, Order, Runner, Target
from repro.stats import Rate, Reason, Stopping
from repro.store import Series
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
    def seeds(self) -> list[int]:
        """The seed of every trial, in order."""
        if self.mode is Mode.REPEAT:
            return [self.first_seed] * self.stopping.most
        return list(range(self.first_seed, self.first_seed + self.stopping.most))


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
            NotReadyError: the engine does not answer.
        """
        results = {cell.id: self.standing(cell) for cell in cells}
        open_cells = [cell for cell in cells if results[cell.id].phase is Phase.WAITING]
        for result in results.values():
            self.report.update(result)
        slots: queue.Queue[int | None] = queue.Queue()
        for index in range(self.jobs):
            slots.put(self.gpus[index % len(self.gpus)] if self.gpus else None)
        with ThreadPoolExecutor(BUILDERS) as builders, ThreadPoolExecutor(self.jobs) as workers:
            work = [builders.submit(self._build, cell, workers, slots) for cell in open_cells]
            try:
                for future in as_completed(work):
                    result = future.result().result()
                    results[result.cell.id] = result
            except BaseException:
                self.runner.stop.set()
                for future in work:
                    future.cancel()
                raise
        return [results[cell.id] for cell in cells]

    def standing(self, cell: Cell) -> CellResult:
        """What the ledger holds of a cell: DONE where nothing is left to try, WAITING otherwise."""
        tally = self.runner.ledger.tally(self._series(cell))
        decision = self.goal.stopping.decide(
            failed=tally.failed, passed=tally.passed, others=sum(tally.others.values())
        )
        phase = Phase.DONE if decision.stop or not self._pending(cell) else Phase.WAITING
        note = "" if decision.reason is Reason.ALL_RUN else decision.why
        return CellResult(
            cell=cell,
            phase=Phase.BROKEN if decision.reason is Reason.HOPELESS else phase,
            rate=decision.rate,
            others=dict(tally.others),
            note=note if phase is Phase.DONE else "",
            gpu=tally.series.gpu,
        )

    # One cell --------------------------------------------------------------------------------------------

    def _build(
        self, cell: Cell, workers: ThreadPoolExecutor, slots: queue.Queue[int | None]
    ) -> Future[CellResult]:
        began = self.clock()
        done: Future[CellResult] = Future()
        if self.runner.stop.is_set():
            raise Interrupted
        self.report.update(replace(self.standing(cell), phase=Phase.BUILDING))
        try:
            prepared = self.runner.prepare(Target(cell=cell, subject=self.subject))
        except BuildError as error:
            broken = replace(self.standing(cell), phase=Phase.BROKEN, note=f"build failed: {error.what}")
            broken = replace(broken, others=Counter(broken.others) + Counter({Outcome.BUILD_FAILED: 1}))
            self.report.update(broken)
            done.set_result(broken)
            return done
        self.report.update(replace(self.standing(cell), phase=Phase.READY))
        return workers.submit(self._try, prepared, slots, began)

    def _try(self, prepared: Prepared, slots: queue.Queue[int | None], began: float) -> CellResult:
        gpu = slots.get()
        try:
            result = self._until_done(prepared, gpu)
        except ReproError as error:
            result = replace(self.standing(prepared.cell), phase=Phase.BROKEN, note=error.what)
        finally:
            slots.put(gpu)
        result = replace(result, seconds=self.clock() - began)
        self.report.update(result)
        return result

    def _until_done(self, prepared: Prepared, gpu: int | None) -> CellResult:
        cell = prepared.cell
        target = Target(cell=cell, subject=self.subject)
        while (result := self.standing(cell)).phase is Phase.WAITING:
            heard = partial(self._heard, cell, self.clock(), result.rate.trials)
            pending = self._pending(cell)
            order = Order(
                seeds=pending[: self.goal.block],
                mode=self.goal.mode,
                gpu=gpu if cell.on_gpu else None,
                first_trial=len(self.goal.seeds) - len(pending),
            )
            ran = self.runner.run(target, prepared, order, heard)
            if ran.gave_up:
                return replace(self.standing(cell), phase=Phase.BROKEN, note=ran.gave_up)
        return result

    def _heard(self, cell: Cell, since: float, before: int) -> None:
        """Tell the news of a running cell, with the time left at the pace of this block."""
        result = self.standing(cell)
        done = result.rate.trials - before
        pace = (self.clock() - since) / done if done > 0 else None
        left = pace * len(self._pending(cell)) if pace is not None else None
        self.report.update(replace(result, phase=Phase.RUNNING, left=left))

    # The ledger ------------------------------------------------------------------------------------------

    def _series(self, cell: Cell) -> Series:
        return Series(
            cell=cell.id,
            revision=self.subject.revision,
            test=self.subject.test,
            mode=self.goal.mode,
            gpu=self.runner.gpu_model if cell.on_gpu and self.gpus else "",
        )

    def _pending(self, cell: Cell) -> list[int]:
        """Seeds of the trials that are still to run, in order."""
        series, goal = self._series(cell), self.goal
        if goal.mode is Mode.REPEAT:
            return goal.seeds[len(self.runner.ledger.done_repetitions(series, goal.first_seed)) :]
        done = self.runner.ledger.done_seeds(series)
        return [seed for seed in goal.seeds if seed not in done]
