"""The rows of a report's tables: the same in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Sequence

from repro import ui
from repro.report import words
from repro.report.inline import code
from repro.report.model import CellRate, Failure, Pairing, Report

Table = tuple[Sequence[str], list[Sequence[str]]]
"""Columns, and rows of sentences. Columns named with a trailing `>` are right-aligned."""


def rate_rows(report: Report, most: int | None = None) -> Table:
    """A row a cell; with several GPU models a column for each."""
    rows = report.rates
    if len(report.gpus) > 1:
        by_place = {(row.series.cell, row.series.gpu): row for row in rows}
        cells = list(dict.fromkeys(row.series.cell for row in most_telling(rows, most)))
        lines = [(code(cell), *(_one(by_place.get((cell, gpu))) for gpu in report.gpus)) for cell in cells]
        return ("cell", *(gpu or "CPU" for gpu in report.gpus)), list(lines)
    columns = ("cell", "failed/trials>", "rate>", "95 % interval", "other outcomes", "GPU")
    return columns, [_row(row) for row in most_telling(rows, most)]


def _row(row: CellRate) -> Sequence[str]:
    return (
        code(row.series.cell),
        f"{row.rate.failed}/{row.rate.trials}",
        words.share(row.rate),
        words.interval(row.rate),
        ui.outcomes(row.others) or "-",
        row.series.gpu or "CPU",
    )


def _one(row: CellRate | None) -> str:
    if row is None or not (row.rate.trials or row.others):
        return "not run"
    counted = f"{row.rate.failed}/{row.rate.trials}: {words.share(row.rate)} ({words.interval(row.rate)})"
    others = ui.outcomes(row.others)
    return (counted if row.rate.trials else "-") + (f"; {others}" if others else "")


def most_telling(rows: Sequence[CellRate], most: int | None) -> Sequence[CellRate]:
    """All rows in their order, or those with the highest rates where there are too many."""
    if most is None or len(rows) <= most:
        return rows
    chosen = sorted(rows, key=lambda row: (-(row.rate.rate or 0.0), row.series))[:most]
    return sorted(chosen, key=lambda row: row.series)


def other_rate_rows(report: Report, most: int | None = None) -> Table:
    """Rates of other modes."""
    rows: list[Sequence[str]] = [
        (
            code(row.series.cell),
            words.MODES[row.series.mode],
            f"{row.rate.failed}/{row.rate.trials}",
            words.interval(row.rate),
            row.series.gpu or "CPU",
        )
        for row in most_telling(report.other_rates, most)
    ]
    return ("cell", "trials", "failed/trials>", "95 % interval", "GPU"), rows


def pair_rows(pairing: Pairing, most: int | None = None) -> Table:
    """A row a comparison of two cells, findings first."""
    rows: list[Sequence[str]] = []
    for pair in pairing.pairs[:most]:
        apart = pair.a.gpu != pair.b.gpu
        counts = pair.counts
        rows.append(
            (
                code(pair.a.cell) + (f" on {pair.a.gpu or 'CPU'}" if apart else ""),
                code(pair.b.cell) + (f" on {pair.b.gpu or 'CPU'}" if apart else ""),
                "yes" if pair.judged.differs else "not found",
                words.number(pair.judged.q_value),
                ui.percent(abs(pair.judged.comparison.difference)),
                f"{counts.both} / {counts.a_only} / {counts.b_only} / {counts.neither}"
                if counts
                else "other inputs",
            )
        )
    return ("first", "second", "differ", "q>", "difference>", "both / first / second / none fail>"), rows


def failure_rows(failure: Failure, most: int | None = None) -> Table:
    """The elements with the largest errors."""
    rows: list[Sequence[str]] = [
        (
            str(one.seed),
            f"({', '.join(map(str, one.index))})",
            f"{one.actual:.7g}",
            f"{one.expected:.7g}",
            words.number(abs(one.actual - one.expected)),
            words.number(one.allowed),
        )
        for one in failure.worst[:most]
    ]
    return ("seed>", "element", "actual>", "expected>", "error>", "allowed>"), rows
