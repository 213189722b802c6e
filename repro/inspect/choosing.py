"""Which trial to look into: the failing inputs that were kept, or a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from repro.bisect.kept import Inputs, take
from repro.cells import Cell
from repro.failing import failing_cells, none_failing
from repro.run import Runner
from repro.subject import Subject

_MANY = 10**6


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A trial, and where it is from.

    Args:
        cell: where its inputs were kept, or where its seed failed.
        seed: of the trial.
        inputs: the inputs that it drew, or None where the seed is all there is.
        case: what a request says of another case than the test file's; empty for that one.
    """

    cell: Cell
    seed: int
    inputs: Inputs | None = None
    case: Mapping[str, object] = field(default_factory=dict)


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
    found = failing_cells(runner, subject, cells, gpu=gpu)
    for cell, tally in found:
        for inputs in take(runner.ledger.kept_inputs(tally.series), runner.state, _MANY):
            if seed in (None, inputs.seed):
                return Choice(cell=cell, seed=inputs.seed, inputs=inputs)
    failing = {cell: runner.ledger.failing_seeds(tally.series) for cell, tally in found}
    if seed is not None:
        return Choice(cell=next((cell for cell in failing if seed in failing[cell]), cells[0]), seed=seed)
    if failing:
        cell, seeds = next(iter(failing.items()))
        return Choice(cell=cell, seed=seeds[0])
    raise none_failing(
        subject,
        "without --seed, what is looked into is a trial that failed",
        otherwise="name a trial that need not fail: --seed 0",
    )
