"""In which cells the ledger has failures: where a command begins that is about a failure."""

from __future__ import annotations

from collections.abc import Sequence

from repro.cells import Cell
from repro.errors import NotReproducedError
from repro.run import Runner
from repro.store import Tally
from repro.subject import Subject


def failing_cells(
    runner: Runner, subject: Subject, cells: Sequence[Cell], *, gpu: int | None
) -> list[tuple[Cell, Tally]]:
    """Cells whose trials failed on the GPU in use, with their outcomes; the most failures first.

    Failures on GPUs of other models do not count: a seed gives other inputs there.

    Args:
        runner: knows the ledger.
        subject: code under test.
        cells: where trials may have failed; among equals the order stays.
        gpu: index of the GPU in use, or None.
    """
    tallies = {tally.series: tally for tally in runner.ledger.tallies(revision=subject.revision)}
    series = {cell: runner.series(cell, subject.revision, subject.test, gpu=gpu) for cell in cells}
    failing = [(cell, tallies[each]) for cell, each in series.items() if each in tallies]
    return sorted((pair for pair in failing if pair[1].failed), key=lambda pair: -pair[1].failed)


def none_failing(subject: Subject, why: str, *, otherwise: str = "") -> NotReproducedError:
    """What to raise where no cell has a failure.

    Args:
        why: what a failure is needed for.
        otherwise: what can be named instead of a failure, or "".
    """
    return NotReproducedError(
        f"the ledger has no failure of {subject.test} in these cells",
        why=why,
        next_step="repro matrix, and then this again" + (f"; or {otherwise}" if otherwise else ""),
    )
