"""What a run would do, before it does anything: cells, images, trials and minutes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from repro.cells import Cell, Excluded, Expansion

TRIAL_SECONDS = {True: 0.2, False: 1.0}
"""Seconds a trial, for cells with and without a GPU, until the ledger knows better."""

STACK_SECONDS = {True: 300.0, False: 60.0}
"""Seconds to build the first cell of a torch build, with and without CUDA: mostly the download."""

CELL_SECONDS = 20.0
"""Seconds to build a further cell on a torch build that is there: triton, pytest, and the image."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A cell of the plan.

    Args:
        cell: what runs.
        present: whether it can run without a build.
        wanted: trials asked for.
        done: trials that the ledger holds already, at most `wanted`.
        build_seconds: estimated time to build it; 0 where it is present.
        trial_seconds: estimated time of one trial.
        measured: whether `trial_seconds` comes from this cell's own history.
        reason: why an include rule added it, or "".
    """

    cell: Cell
    present: bool
    wanted: int
    done: int
    build_seconds: float
    trial_seconds: float
    measured: bool
    reason: str = ""

    @property
    def minutes(self) -> float:
        """Estimated minutes until the cell is done."""
        return (self.build_seconds + (self.wanted - self.done) * self.trial_seconds) / 60


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All rows, oldest stack first, and what is left out.

    Args:
        rows: what runs.
        excluded: what does not, with reasons.
        workers: cells that run at the same time.
    """

    rows: tuple[Row, ...]
    excluded: tuple[Excluded, ...]
    workers: int = 1

    @property
    def builds(self) -> int:
        """Cells that must be built first."""
        return sum(not row.present for row in self.rows)

    @property
    def trials(self) -> int:
        """Trials still to run."""
        return sum(row.wanted - row.done for row in self.rows)

    @property
    def minutes(self) -> float:
        """Estimated minutes for everything: builds one after another, trials spread over the workers."""
        if not self.rows:
            return 0.0
        building = sum(row.build_seconds for row in self.rows) / 60
        running = [row.minutes - row.build_seconds / 60 for row in self.rows]
        return building + max(max(running), sum(running) / self.workers)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values: `cells`, `excluded` and `total`."""
        return {
            "cells": [_row_json(row) for row in self.rows],
            "excluded": [{"id": each.cell.id, "reason": each.reason} for each in self.excluded],
            "total": {
                "cells": len(self.rows),
                "excluded": len(self.excluded),
                "builds": self.builds,
                "trials": self.trials,
                "minutes": round(self.minutes, 1),
            },
        }


def plan(
    expansion: Expansion,
    *,
    present: Callable[[Cell], bool],
    trials: int,
    done: Mapping[str, int] | None = None,
    history: Mapping[str, float] | None = None,
    workers: int = 1,
) -> Plan:
    """Lay out a run.

    Args:
        expansion: cells that run, and those left out.
        present: whether a cell can run without a build.
        trials: asked for in each cell.
        done: trials that the ledger holds, by cell id.
        history: measured seconds a trial, by cell id.
        workers: cells that run at the same time.
    """
    done, history = done or {}, history or {}
    guess = {gpu: _guess(expansion, history, gpu=gpu) for gpu in (True, False)}
    there = {cell.id: present(cell) for cell in expansion.cells}
    stacks = {_stack(cell) for cell in expansion.cells if there[cell.id]}
    rows = []
    for cell in expansion.cells:
        rows.append(
            Row(
                cell=cell,
                present=there[cell.id],
                wanted=trials,
                done=min(trials, done.get(cell.id, 0)),
                build_seconds=0.0 if there[cell.id] else _build_seconds(cell, stacks),
                trial_seconds=history.get(cell.id, guess[cell.on_gpu]),
                measured=cell.id in history,
                reason=expansion.reasons.get(cell.id, ""),
            )
        )
        stacks.add(_stack(cell))
    return Plan(rows=tuple(rows), excluded=expansion.excluded, workers=max(1, workers))


def _stack(cell: Cell) -> tuple[str, str, str]:
    """What cells share an image layer for."""
    return cell.torch, cell.cuda, cell.python


def _build_seconds(cell: Cell, stacks: set[tuple[str, str, str]]) -> float:
    first = 0.0 if _stack(cell) in stacks else STACK_SECONDS[cell.on_gpu]
    return first + CELL_SECONDS


def _guess(expansion: Expansion, history: Mapping[str, float], *, gpu: bool) -> float:
    """Seconds a trial in a cell that never ran: what its measured neighbours take, else a constant."""
    known = [history[cell.id] for cell in expansion.cells if cell.id in history and cell.on_gpu == gpu]
    return median(known) if known else TRIAL_SECONDS[gpu]


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "id": row.cell.id,
        **asdict(row.cell),
        "env": dict(row.cell.env),
        "packages": list(row.cell.packages),
        "crossed": row.cell.crossed,
        "gpu": row.cell.on_gpu,
        "present": row.present,
        "trials": {"wanted": row.wanted, "done": row.done},
        "minutes": round(row.minutes, 1),
        "measured": row.measured,
        "reason": row.reason,
    }
