"""Is the failure a function of its inputs? They are run again: in one process, in fresh ones, elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from repro import ui
from repro.bisect.evidence import elements
from repro.bisect.kept import Inputs
from repro.bisect.lines import Candidate, VersionLine
from repro.bisect.tryout import Tryout, Untestable
from repro.cells import Cell
from repro.errors import NotReproducedError
from repro.run import Runner
from repro.store import Trial
from repro.subject import Subject
from repro.trial.records import Outcome

INPUTS = 4
"""Failing inputs that are replayed where no seeds are named."""


@dataclass(frozen=True, kw_only=True)
class Again:
    """One failing input, run again in one cell.

    Args:
        cell: where.
        seed: the seed that the inputs came from.
        same: (failed, run) in one process.
        fresh: (failed, run), each in a process of its own; None where none was asked for.
        places: distinct sets of elements that differed when it failed.
        others: outcomes that were neither a pass nor the failure looked for.
        own: whether the inputs came from this cell.
    """

    cell: Cell
    seed: int
    same: tuple[int, int]
    fresh: tuple[int, int] | None
    places: frozenset[str]
    others: int
    own: bool

    @property
    def always(self) -> bool:
        """Whether it failed every time."""
        return self.run > 0 and self.failed == self.run

    @property
    def failed(self) -> int:
        """Failures, in whatever process."""
        return self.same[0] + (self.fresh[0] if self.fresh else 0)

    @property
    def run(self) -> int:
        """Passes and failures, in whatever process."""
        return self.same[1] + (self.fresh[1] if self.fresh else 0)


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """What came of all replays.

    Args:
        rows: cell by cell, input by input.
        broken: cells in which nothing could be replayed, and why.
    """

    rows: Sequence[Again]
    broken: Sequence[tuple[Cell, str]]

    @property
    def said(self) -> str:
        """Whether the failure is a function of the inputs, in one sentence."""
        own = [row for row in self.rows if row.own and row.run]
        others = [row for row in self.rows if not row.own and row.run]
        if not own:
            return "nothing could be replayed"
        if not any(row.failed for row in own):
            return "no input failed again: something beside the inputs decides"
        if not all(row.always for row in own):
            failed, run = sum(row.failed for row in own), sum(row.run for row in own)
            runs = f"{failed} of {ui.count(run, 'run')}"
            return f"the same inputs fail in {runs}: something beside the inputs decides, too"
        fresh = " and in fresh ones" if any(row.fresh for row in own) else ""
        told = f"the failure is a function of the inputs: they fail every time, in one process{fresh}"
        if any(len(row.places) > 1 for row in own):
            told = (
                f"the same inputs fail every time, in one process{fresh}, but not at the same elements:"
                " something beside the inputs decides, too"
            )
        if not others:
            return told
        cells = {row.cell.id for row in others}
        always = {cell for cell in cells if all(row.always for row in others if row.cell.id == cell)}
        never = {cell for cell in cells if not any(row.failed for row in others if row.cell.id == cell)}
        where = f"they always fail in {len(always)}, never in {len(never)}"
        return f"{told}; of {ui.count(len(cells), 'other cell')}, {where}"


@dataclass(kw_only=True)
class Replaying:
    """Replays failing inputs of one cell in all cells.

    Args:
        runner: runs the trials.
        subject: code under test.
        gpu: index of the GPU to use, or None.
        times: runs of each input in one process.
        fresh: further runs of each input, in a process each.
        clock: seconds, monotonic.
    """

    runner: Runner
    subject: Subject
    gpu: int | None
    times: int
    fresh: int
    clock: Callable[[], float]

    def run(
        self, cells: Sequence[Cell], source: Cell, seeds: Sequence[int], pool: ThreadPoolExecutor
    ) -> Replayed:
        """Replay inputs that failed in `source`, there first and then in the other cells.

        Args:
            cells: all cells.
            source: one of them.
            seeds: whose inputs; empty for the first few that were kept.
            pool: where cells are prepared.

        Raises:
            NotReproducedError: no inputs were kept, or none of the seeds' inputs.
            Interrupted, NotReadyError: as `Runner.run`.
        """
        ordered = [source, *(cell for cell in cells if cell != source)]
        candidates = [Candidate(name=cell.id, label=cell.id, cell=cell) for cell in ordered]
        line = VersionLine(axis="cells", candidates=candidates, subject=self.subject)
        tryout = Tryout(self.runner, line, gpu=self.gpu, pool=pool, clock=self.clock)
        inputs = _chosen(tryout.kept(0, 10**6), seeds)
        rows: list[Again] = []
        broken: list[tuple[Cell, str]] = []
        for index, cell in enumerate(ordered):
            try:
                rows += self._cell(tryout, index, inputs)
            except Untestable as untestable:
                broken.append((cell, untestable.finding.message))
        return Replayed(rows=rows, broken=broken)

    def _cell(self, tryout: Tryout, index: int, inputs: Sequence[Inputs]) -> list[Again]:
        same = tryout.replay(index, inputs, self.times)
        fresh = [trial for _ in range(self.fresh) for trial in tryout.replay(index, inputs, 1)]
        cell = tryout.line.candidates[index].cell
        return [self._again(cell, each, same, fresh, own=index == 0) for each in inputs]

    def _again(
        self, cell: Cell, inputs: Inputs, same: Sequence[Trial], fresh: Sequence[Trial], *, own: bool
    ) -> Again:
        mine = [[trial for trial in trials if trial.seed == inputs.identity] for trials in (same, fresh)]
        places = {place for trial in mine[0] + mine[1] for place in elements([trial]).values()}
        return Again(
            cell=cell,
            seed=inputs.seed,
            same=_counts(mine[0]),
            fresh=_counts(mine[1]) if self.fresh else None,
            places=frozenset(places),
            others=sum(not trial.outcome.counts for trial in mine[0] + mine[1]),
            own=own,
        )


def _chosen(kept: Sequence[Inputs], seeds: Sequence[int]) -> list[Inputs]:
    chosen = [each for each in kept if each.seed in seeds] if seeds else list(kept[:INPUTS])
    if chosen:
        return chosen
    there = ", ".join(str(each.seed) for each in kept)
    raise NotReproducedError(
        "no inputs of these seeds were kept" if seeds else "no failing inputs were kept",
        why=f"those of seeds {there} were"
        if there
        else "they are too large, or the trials come from another ledger",
        next_step="leave --seed out, or name one of those" if there else "repro matrix --fresh",
    )


def _counts(trials: Sequence[Trial]) -> tuple[int, int]:
    rated = [trial for trial in trials if trial.outcome.counts]
    return sum(trial.outcome is Outcome.FAILED for trial in rated), len(rated)


def to_json(replayed: Replayed) -> dict[str, Any]:
    """All of it as plain values."""
    return {
        "said": replayed.said,
        "rows": [_row(row) for row in replayed.rows],
        "broken": [{"cell": cell.id, "why": why} for cell, why in replayed.broken],
    }


def _row(row: Again) -> dict[str, Any]:
    fresh = {} if row.fresh is None else {"fresh_processes": _rate(row.fresh)}
    return {
        "cell": row.cell.id,
        "seed": row.seed,
        "own": row.own,
        "same_process": _rate(row.same),
        **fresh,
        "places": len(row.places),
        "others": row.others,
    }


def _rate(counts: tuple[int, int]) -> dict[str, int]:
    return {"failed": counts[0], "trials": counts[1]}
