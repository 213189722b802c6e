"""Which trial to look into: the failing inputs that were kept, or a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from repro.bisect.kept import Inputs, take
from repro.cells import Cell
from repro.errors import NotReproducedError
from repro.run import Runner
from repro.subject import Subject
from repro.trial.records import Outcome

_MANY = 10**6


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A trial, and where it is from.

    Args:
        cell: where its inputs were kept, or where its seed failed.
        seed: of the trial.
        inputs: the inputs that it drew, or None where the seed is all there is.
    """

    cell: Cell
    seed: int
    inputs: Inputs | None = None


def choose(
    runner: Runner, subject: Subject, cells: Sequence[Cell], seed: int | None, gpu: int | None
) -> Choice:
    """The trial to look into: a failing one whose inputs were kept, of the cell that fails most.

    Args:
        runner: knows the ledger.
        subject: code under test.
        cells: where trials may have failed, in the order of preference.
        seed: of the trial, or None for any.
        gpu: index of the GPU in use, or None.

    Raises:
        NotReproducedError: no seed was named, and no failure was recorded.
    """
    series = {cell: runner.series(cell, subject.revision, subject.test, gpu=gpu) for cell in cells}
    tallies = {cell: runner.ledger.tally(each) for cell, each in series.items()}
    ordered = sorted(cells, key=lambda cell: -tallies[cell][Outcome.FAILED])
    for cell in ordered:
        for inputs in take(runner.ledger.kept_inputs(series[cell]), runner.state, _MANY):
            if seed in (None, inputs.seed):
                return Choice(cell=cell, seed=inputs.seed, inputs=inputs)
    if seed is not None:
        failed = [cell for cell in ordered if seed in runner.ledger.failing_seeds(series[cell])]
        return Choice(cell=(failed or list(cells))[0], seed=seed)
    for cell in ordered:
        if seeds := runner.ledger.failing_seeds(series[cell]):
            return Choice(cell=cell, seed=seeds[0])
    raise NotReproducedError(
        f"the ledger has no failure of {subject.test} in these cells",
        why="without --seed, what is looked into is a trial that failed",
        next_step="repro matrix, and then this again; or name a trial that need not fail: --seed 0",
    )
