"""Trying one candidate: its image or its copy made, trials run, and what came of them as counts."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from repro import ui
from repro.bisect.kept import Inputs, replay, take
from repro.bisect.lines import Line
from repro.bisect.names import TestNames
from repro.bisect.pace import Pace
from repro.engines.base import Prepared
from repro.errors import BuildError, NotReadyError, UsageError
from repro.run import KEPT_INPUTS, Order, Ran, Runner, Target
from repro.store import Series, Tally, Trial
from repro.trial.records import Mode, Outcome

LARGEST_BLOCK = 500
"""Trials of one process, at most: a verdict may come any time."""
LEAST_TRIALS = 3
"""Of a candidate that has shown no rated trial yet: one that fails otherwise now and then is testable."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Trials of one candidate, by what came of them."""

    failed: int = 0
    passed: int = 0
    others: Mapping[Outcome, int] = field(default_factory=dict)

    @property
    def rated(self) -> int:
        """Trials that enter the failure rate."""
        return self.failed + self.passed

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            failed=self.failed + other.failed,
            passed=self.passed + other.passed,
            others=Counter(self.others) + Counter(other.others),
        )


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A candidate that cannot answer the question, and why.

    Args:
        index: the candidate.
        outcome: what its trials came to instead.
        message: what they said.
        lacks: whether its copy lacks contents that the user can provide.
    """

    index: int
    outcome: Outcome
    message: str
    lacks: bool = False


class Untestable(Exception):  # noqa: N818
    """A candidate shows neither passes nor the failure that is looked for."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Tryout:
    """Tries candidates of one line; replays of several may run at a time.

    Args:
        runner: runs the trials.
        line: the candidates.
        gpu: index of the GPU to use, or None.
        pool: where candidates are prepared ahead of their trials.
        clock: seconds, monotonic.
        fresh: leave out of account what the ledger held before.
        names: follows a test that was called otherwise, or None.
    """

    def __init__(
        self,
        runner: Runner,
        line: Line,
        *,
        gpu: int | None,
        pool: ThreadPoolExecutor,
        clock: Callable[[], float],
        fresh: bool = False,
        names: TestNames | None = None,
    ) -> None:
        self.runner, self.line, self.pace = runner, line, Pace()
        self.trials = 0
        self.prepared: set[int] = set()
        self._gpu, self._pool, self._clock, self._names, self.fresh = gpu, pool, clock, names, fresh
        self._coming: dict[int, Future[tuple[Target, Prepared]]] = {}
        self._made: Counter[int] = Counter()
        self._counting = threading.Lock()

    # Preparing -------------------------------------------------------------------------------------------

    def prefetch(self, indexes: Iterable[int]) -> None:
        """Prepare candidates that are likely to be asked for next, while trials run."""
        for index in indexes:
            if index not in self._coming and not self.line.missing(index):
                self._coming[index] = self._pool.submit(self._prepare, index)

    def ready(self, index: int) -> tuple[Target, Prepared]:
        """The candidate, ready to run.

        Raises:
            Untestable: it has no such test, its image cannot be built, or its code cannot be had.
        """
        if missing := self.line.missing(index):
            raise Untestable(Finding(index=index, outcome=Outcome.TEST_MISSING, message=missing))
        self.prefetch([index])
        began = self._clock()
        try:
            target, prepared = self._coming[index].result()
        except (BuildError, UsageError) as error:
            outcome = Outcome.BUILD_FAILED
            raise Untestable(Finding(index=index, outcome=outcome, message=error.what)) from error
        with self._counting:
            if index not in self.prepared:
                self.prepared.add(index)
                self.pace.note_build(self._clock() - began)
        return target, prepared

    def _prepare(self, index: int) -> tuple[Target, Prepared]:
        target = self.line.target(index)
        prepared = self.runner.prepare(target)
        return (self._names.follow(target, prepared) if self._names else target), prepared

    # Rates -----------------------------------------------------------------------------------------------

    def known(self, index: int) -> Counts:
        """What the ledger holds of a candidate: trials that cost nothing."""
        series = self.line.series(index)
        if series is None or self.fresh:
            return Counts()
        return _counts(self.runner.ledger.tally(self._series(index, *series, Mode.SEEDS)))

    def rate(self, index: int, trials: int) -> Counts:
        """Run further trials with seeds of the candidate's own; more than asked where they cost nothing.

        Raises:
            Untestable: neither a pass nor the failure that is looked for came of them.
            Interrupted, NotReadyError: as `Runner.run`.
        """
        target, prepared = self.ready(index)
        series = self._of(index, target, Mode.SEEDS)
        first = self._next_seed(index, series)
        wanted = max(self.pace.batch(trials), 1 if self._made[index] else LEAST_TRIALS)
        seeds = range(first, first + min(wanted, LARGEST_BLOCK))
        kept = max(0, KEPT_INPUTS - len(self.runner.ledger.kept_inputs(series)))
        ran = self._run(target, prepared, Order(seeds=seeds, gpu=self._gpu, keep_inputs=kept))
        counts = _counts(self.runner.ledger.tally(series, seeds))
        self._made[index] += counts.rated
        self.trials += counts.rated
        if not counts.rated:
            self._raise_untestable(index, target, counts, ran, series)
        return counts

    def _next_seed(self, index: int, series: Series) -> int:
        """Each candidate has seeds of its own: trials of two candidates with one seed are no two trials."""
        first = own_seeds(self.line.candidates[index].name)
        done = self.runner.ledger.done_seeds(series)
        return max((seed + 1 for seed in done if seed >= first), default=first)

    def _raise_untestable(self, index: int, target: Target, counts: Counts, ran: Ran, series: Series) -> None:
        ran.require(f"the trials of {self.line.candidates[index].label} could not run", resumes=True)
        if not counts.others:
            raise NotReadyError(
                f"the trials did not run on {series.gpu or 'the CPU'}",
                why="the process saw another GPU than the kit",
                next_step="`repro doctor` shows the GPUs",
            )
        outcome = max(counts.others, key=lambda each: counts.others[each])
        message = ui.one_line(ran.gave_up or self._message(series, outcome))
        if notes := target.subject.notes:
            message += f" (its copy is not whole: {ui.one_line('; '.join(notes), 600)})"
        raise Untestable(Finding(index=index, outcome=outcome, message=message, lacks=bool(notes)))

    def _message(self, series: Series, outcome: Outcome) -> str:
        found = self.runner.ledger.trials(
            cell=series.cell,
            revision=series.revision,
            test=series.test,
            mode=series.mode,
            gpu=series.gpu,
            outcomes=[outcome],
        )
        return next((trial.message for trial in islice(found, 1)), "")

    # Kept inputs -----------------------------------------------------------------------------------------

    def kept(self, index: int, most: int) -> list[Inputs]:
        """Failing inputs of a candidate that were kept as bits."""
        target, _ = self.ready(index)
        series = self._of(index, target, Mode.SEEDS)
        return take(self.runner.ledger.kept_inputs(series), self.runner.state, most)

    def replay(self, index: int, inputs: Sequence[Inputs], rounds: int = 1) -> list[Trial]:
        """Run kept inputs in a process of its own: each in turn, `rounds` times.

        Raises:
            Untestable: none of the trials passed or failed.
            Interrupted, NotReadyError: as `Runner.run`.
        """
        target, prepared = self.ready(index)
        series = self._of(index, target, Mode.REPLAY)
        order = replay(self.runner.ledger, series, inputs, rounds, gpu=self._gpu)
        ran = self._run(target, prepared, order)
        trials = [trial for trial in self._trials(series) if trial.repetition >= order.first_trial]
        with self._counting:
            self.trials += sum(trial.outcome.counts for trial in trials)
        if not any(trial.outcome.counts for trial in trials):
            others = Counter(trial.outcome for trial in trials)
            self._raise_untestable(index, target, Counts(others=others), ran, series)
        return trials

    def replayed(self, index: int) -> list[Trial]:
        """Replays of a candidate that the ledger holds."""
        series = self.line.series(index)
        if series is None or self.fresh:
            return []
        return list(self._trials(self._series(index, *series, Mode.REPLAY)))

    def _trials(self, series: Series) -> Iterable[Trial]:
        return self.runner.ledger.trials(
            cell=series.cell, revision=series.revision, test=series.test, mode=series.mode, gpu=series.gpu
        )

    # Both ------------------------------------------------------------------------------------------------

    def _run(self, target: Target, prepared: Prepared, order: Order) -> Ran:
        began = self._clock()
        ran = self.runner.run(target, prepared, order)
        with self._counting:
            self.pace.note_run(len(order.seeds), ran.busy, self._clock() - began)
        return ran

    def _of(self, index: int, target: Target, mode: Mode) -> Series:
        return self._series(index, target.subject.revision, target.subject.test, mode)

    def _series(self, index: int, revision: str, test: str, mode: Mode) -> Series:
        cell = self.line.candidates[index].cell
        return self.runner.series(cell, revision, test, gpu=self._gpu, mode=mode)


def own_seeds(name: str) -> int:
    """The first seed of a candidate: from its name, so that resuming finds it again; below 2^32."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    return 2**31 + (number % 2**19) * 2**12


def _counts(tally: Tally) -> Counts:
    return Counts(failed=tally.failed, passed=tally.passed, others=tally.others)
