"""The title of a report, and its verdict in at most five lines.

Sentences are plain text with code between backticks; `repro.report.inline` turns them into Markdown and HTML.
"""

from __future__ import annotations

from collections.abc import Sequence

from repro import ui
from repro.report.model import CellRate, Report, Search
from repro.report.words import MODES, agreed, capital, counted, differences, failed_how, interval, rates
from repro.trial.records import Mode

VERDICT_LINES = 5
UNTESTED = "untested: run `repro diagnose`"


def title(report: Report) -> str:
    """The test and its rate; never one rate for cells that ran other numbers of trials."""
    rows = report.main_rates
    where = _where(report)
    if not any(row.rate.trials for row in rows):
        return f"{report.test}: no trial passed or failed{where}"
    if not any(row.rate.failed for row in rows):
        return (
            f"{report.test} has not failed in {counted(sum(row.rate.trials for row in rows), 'trial')}{where}"
        )
    return f"{report.test} fails in {rates(rows)}{where}"


def _where(report: Report) -> str:
    gpus = [gpu or "the CPU" for gpu in report.gpus]
    if not gpus or gpus == ["the CPU"]:
        return " on the CPU" if gpus else ""
    return f" on {gpus[0]}" if len(gpus) == 1 else f" on {len(gpus)} GPU models"


def verdict(report: Report) -> list[tuple[str, str]]:
    """What is known, in at most five lines, each with the question that it answers."""
    lines = [
        ("How often", _how_often(report)),
        ("In which cells", _which_cells(report)),
        ("Since when", _since_when(report)),
        ("What fails", _what_fails(report)),
        ("Why", _why(report)),
    ]
    return [(question, capital(line)) for question, line in lines if line][:VERDICT_LINES]


def _how_often(report: Report) -> str:
    rows = [row for row in report.main_rates if row.rate.trials]
    if not rows:
        return "no trial passed or failed; the table says what came of them."
    worst = max(rows, key=lambda row: (row.rate.rate or 0.0, row.rate.trials)).rate
    mode = "" if rows[0].series.mode is Mode.SEEDS else f" ({MODES[rows[0].series.mode]})"
    if not worst.failed:
        most = max(rows, key=lambda row: row.rate.trials).rate
        return (
            f"never in {counted(sum(row.rate.trials for row in rows), 'trial')}{mode}; a rate above"
            f" {ui.percent(most.high)} would have shown with 95 % confidence."
        )
    every = " Every trial fails: this is no flake." if all(row.rate.rate == 1 for row in rows) else ""
    return f"{rates(rows)}; 95 % interval {_of_worst(rows)}{interval(worst)}{mode}.{every}"


def _of_worst(rows: Sequence[CellRate]) -> str:
    same = len({(row.rate.failed, row.rate.trials) for row in rows}) == 1
    return "" if same else "of the highest "


def _which_cells(report: Report) -> str:
    pairing, cells = report.pairing, {row.series.cell for row in report.rates if row.rate.trials}
    if len(pairing.pairs) == 0:
        return f"only {ui.count(len(cells), 'cell')} ran: `repro matrix` tries more." if cells else ""
    return differences(pairing)


def _since_when(report: Report) -> str:
    if not report.searches:
        return "not searched: run `repro bisect`."
    newest: dict[str, Search] = {}
    for search in report.searches:
        newest.setdefault(search.axis, search)
    first = next((search for search in newest.values() if search.changed), report.searches[0])
    others = [search for search in newest.values() if search is not first]
    told = [f"Along {search.axis}: {search.sentence}" for search in others if search.changed is not False]
    same = [search.axis for search in others if search.changed is False]
    if same:
        either = " either" if first.changed is False else ""
        told.append(f"Nothing changed along {', '.join(same)}{either}.")
    return " ".join([first.sentence, *told])


def _what_fails(report: Report) -> str:
    anatomy = report.anatomy
    if not anatomy.failures:
        return ""
    failure = anatomy.failures[0]
    of = f"{failure.trials} of {ui.count(anatomy.looked_at, 'failure')} looked at"
    same = agreed(report)
    return f"{of}: {failed_how(failure)}.{' ' + same if same else ''}"


def _why(report: Report) -> str:
    diagnosis = report.diagnosis
    if diagnosis.problem:
        return f"{diagnosis.problem}."
    if not diagnosis.causes:
        return f"{UNTESTED}."
    supported = diagnosis.of("supported")
    if not supported:
        return f"no suspected cause is supported; {len(diagnosis.of('ruled out'))} ruled out."
    named = "; ".join(
        cause.name + ("" if cause.share is None else f" ({ui.percent(cause.share)} of the failing elements)")
        for cause in supported[:2]
    )
    return f"{named}; {ui.count(len(diagnosis.of('ruled out')), 'other cause')} ruled out."
