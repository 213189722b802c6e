"""The news of a run as it comes: a live table on a terminal, a plain line for each change elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table

from repro import ui
from repro.cells import Cell
from repro.matrix import CellResult, Phase

COLUMNS = ("cell", "state", "failed/trials>", "rate>", "interval", "others", "left>")


def open_board(cells: Sequence[Cell]) -> Board:
    """The reporter that fits stderr."""
    return LiveBoard(cells) if sys.stderr.isatty() else PlainBoard(cells)


class Board(AbstractContextManager["Board"]):
    """What both reporters share: the newest result of every cell."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = [cell.id for cell in cells]
        self.results: dict[str, CellResult] = {}
        self._lock = threading.Lock()

    def update(self, result: CellResult) -> None:
        """A cell has come further."""
        with self._lock:
            before = self.results.get(result.cell.id)
            self.results[result.cell.id] = result
            self._show(result, before)

    def say(self, line: str) -> None:
        """Print one line of progress."""
        ui.say(line)

    def _show(self, result: CellResult, before: CellResult | None) -> None:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class PlainBoard(Board):
    """A line when a cell changes its state, and one each time its trials have grown by a quarter."""

    def _show(self, result: CellResult, before: CellResult | None) -> None:
        same = before is not None and before.phase is result.phase
        known = before.rate.trials if before is not None else 0
        if before is not None and same and result.rate.trials < known * 1.25 + 10:
            self.results[result.cell.id] = before
            return
        if result.phase is not Phase.WAITING:
            ui.say(_line(result))


def _line(result: CellResult) -> str:
    """What has become of a cell, in one line."""
    rate, parts = result.rate, [f"{ui.cell_name(result.cell)}: {result.phase.value}"]
    if rate.rate is not None:
        interval = f"{ui.percent(rate.low)} to {ui.percent(rate.high)}"
        parts.append(f"{rate.failed} of {rate.trials} failed, {ui.percent(rate.rate)} ({interval})")
    parts.append(ui.outcomes(result.others))
    parts.append(f"{ui.duration(result.left)} left" if result.left is not None else "")
    parts.append(result.note)
    return ", ".join(part for part in parts if part)


class LiveBoard(Board):
    """A table that is drawn anew as the news come in."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        super().__init__(cells)
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, refresh_per_second=4, get_renderable=self._table)

    def __enter__(self) -> LiveBoard:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def say(self, line: str) -> None:
        self._console.print(line, markup=False)

    def _show(self, result: CellResult, before: CellResult | None) -> None:
        pass  # drawn at the next refresh

    def _table(self) -> Table:
        return ui.make_table(
            COLUMNS, [row(self.results[cell]) for cell in self.cells if cell in self.results]
        )


def row(result: CellResult) -> tuple[str, ...]:
    """One line of the table of a run: see `COLUMNS`."""
    rate = result.rate
    return (
        ui.cell_name(result.cell),
        result.phase.value,
        f"{rate.failed}/{rate.trials}",
        ui.percent(rate.rate) if rate.rate is not None else "-",
        f"{ui.percent(rate.low)} to {ui.percent(rate.high)}" if rate.trials else "-",
        ui.outcomes(result.others),
        ui.duration(result.left) if result.left is not None else "",
    )
