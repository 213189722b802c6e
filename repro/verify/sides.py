"""The subject as it is and the fixed one, each able to run trials in the same cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from repro.bisect.kept import Inputs, replay, take
from repro.engines.base import Prepared
from repro.run import KEPT_INPUTS, Order, Ran, Runner, Target
from repro.store import Series, Tally, Trial
from repro.trial.records import Mode

INPUTS = 4
"""Failing inputs that are replayed, at most."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of the comparison.

    Args:
        runner: runs the trials.
        target: code under test, in the cell that both sides share.
        prepared: that cell.
        gpu: index of the GPU to use, or None.
    """

    runner: Runner
    target: Target
    prepared: Prepared
    gpu: int | None

    def series(self, mode: Mode = Mode.SEEDS) -> Series:
        """Under which the ledger keeps its trials."""
        cell, subject = self.target.cell, self.target.subject
        return self.runner.series(cell, subject.revision, subject.test, gpu=self.gpu, mode=mode)

    def tally(self) -> Tally:
        """Outcomes of its seeds."""
        return self.runner.ledger.tally(self.series())

    def trials(self) -> dict[int, Trial]:
        """What the ledger holds of it, by seed."""
        return {trial.seed: trial for trial in self._recorded(Mode.SEEDS)}

    def run(self, seeds: Sequence[int]) -> None:
        """Run those of the seeds that the ledger has not.

        Raises:
            NotReadyError: the engine, the disk or the GPU failed.
            Interrupted: as `Runner.run`.
        """
        done = self.runner.ledger.done_seeds(self.series())
        pending = [seed for seed in seeds if seed not in done]
        kept = max(0, KEPT_INPUTS - len(self.runner.ledger.kept_inputs(self.series())))
        if pending:
            self._run(Order(seeds=pending, gpu=self.gpu, keep_inputs=kept))

    def harvest(self) -> list[Inputs]:
        """Failing inputs that were kept; where none was, failing seeds stand for what they draw."""
        ledger, series = self.runner.ledger, self.series()
        kept = take(ledger.kept_inputs(series), self.runner.state, INPUTS)
        seeds = ledger.failing_seeds(series)[:INPUTS]
        return kept or [Inputs(seed=seed, identity=seed) for seed in seeds]

    def replay(self, inputs: Sequence[Inputs], times: int) -> list[Trial]:
        """Run harvested inputs in one process, each in turn.

        Raises:
            NotReadyError: the engine, the disk or the GPU failed.
            Interrupted: as `Runner.run`.
        """
        order = replay(self.runner.ledger, self.series(Mode.REPLAY), inputs, times, gpu=self.gpu)
        self._run(order)
        return [trial for trial in self._recorded(Mode.REPLAY) if trial.repetition >= order.first_trial]

    def _run(self, order: Order) -> Ran:
        ran = self.runner.run(self.target, self.prepared, order)
        ran.require(f"trials could not run in {self.target.cell.id}", resumes=True)
        return ran

    def _recorded(self, mode: Mode) -> Iterator[Trial]:
        series = self.series(mode)
        return self.runner.ledger.trials(
            cell=series.cell, revision=series.revision, test=series.test, mode=mode, gpu=series.gpu
        )


def interleaved(sides: Iterable[Side], inputs: Sequence[Inputs], times: int) -> list[list[Trial]]:
    """Replay inputs on each side in turn, twice, so that what drifts with time is no difference of theirs.

    Returns:
        the trials of each side; `times` runs of each input.
    """
    sides = list(sides)
    found: list[list[Trial]] = [[] for _ in sides]
    for share in filter(None, (times - times // 2, times // 2)):
        for place, side in enumerate(sides):
            found[place] += side.replay(inputs, share)
    return found
