"""The report as the body of one GitHub issue: verdict first, details in folds, always within the limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from repro.report import explaining as explain
from repro.report import words
from repro.report.inline import code, is_link, markdown, short, table
from repro.report.model import CellRate, Report, Search
from repro.report.tables import other_rate_rows, pair_rows, rate_rows
from repro.report.verdict import title, verdict
from repro.trial.records import Mode

LIMIT = 65_536
"""Characters of an issue's body. Bytes are counted here, so that no way of counting exceeds it."""


LEVELS = tuple(
    explain.Detail(*level) for level in ((400, 2000), (120, 1000), (40, 500), (15, 250), (6, 120), (3, 80))
)
"""From all of it to what surely fits."""


def to_markdown(report: Report, limit: int = LIMIT) -> str:
    """The issue text, with as much detail as fits; what is left out is said where it would stand.

    Args:
        limit: bytes, 8,000 at least.
    """
    for level in LEVELS:
        text = _render(report, level)
        if len(text.encode()) <= limit:
            return text
    return _cut(text, limit)


def _render(report: Report, level: explain.Detail) -> str:
    sections: Sequence[Callable[[Report, explain.Detail], list[str]]] = (
        _head, _rates, _other_rates, _cells, _since_when, explain.anatomy, explain.causes, explain.ruled_out,
        explain.script, explain.environment, _foot,
    )  # fmt: skip
    return "\n".join(line for section in sections for line in section(report, level)) + "\n"


def _cut(text: str, limit: int) -> str:
    """The beginning of a text that no level of detail makes short enough, to the last whole section."""
    note = "\n\nThe rest does not fit an issue; the HTML page has it.\n"
    kept = text.encode()[: limit - len(note.encode())].decode(errors="ignore")
    return kept[: kept.rfind("\n## ")].rstrip() + note


def _head(report: Report, level: explain.Detail) -> list[str]:
    lines = [f"# {markdown(short(title(report), 300))}", ""]
    for question, line in verdict(report):
        lines += [f"- **{question}:** {markdown(short(line, max(level.text, 300)))}"]
    about = f"Trials of {code(report.test)} at revision {code(report.revision)}"
    about += f" of {code(report.origin)}" if report.origin else ""
    return [*lines, "", markdown(f"{about}. Every number below counts recorded trials."), ""]


def _rates(report: Report, level: explain.Detail) -> list[str]:
    if not report.rates:
        return []
    columns, rows = rate_rows(report, level.rows)
    cells = len(rows) if len(report.gpus) == 1 else len(words.cells_of(report.rates))
    left_out = explain.left_out(cells, len(rows), "cells, with lower rates,")
    if len(report.gpus) == 1:
        left_out = explain.left_out(len(report.rates), len(rows), "cells, with lower rates,")
    notes = [f"- {markdown(note)}" for note in report.notes]
    return [
        "## Failure rates", "", words.RATES_HOW, "", *table(columns, rows), *left_out, "", *notes,
        *([""] if notes else []),
    ]  # fmt: skip


def _other_rates(report: Report, level: explain.Detail) -> list[str]:
    if not report.other_rates:
        return []
    told = table(*other_rate_rows(report, level.rows))
    left_out = explain.left_out(len(report.other_rates), level.rows, "rows")
    return ["### Other rates, never mixed with those", "", *told, *left_out, ""]


def _cells(report: Report, level: explain.Detail) -> list[str]:
    pairing = report.pairing
    if not pairing.pairs:
        return []
    most = max(6, level.rows // 4)
    told = table(*pair_rows(pairing, most))
    left_out = explain.left_out(len(pairing.pairs), most, "comparisons")
    return ["## Which cells differ", "", markdown(words.paired_how(pairing)), "", *told, *left_out, ""]


def _since_when(report: Report, level: explain.Detail) -> list[str]:
    if not report.searches:
        return ["## Since when", "", "Not searched: run `repro bisect`.", ""]
    return ["## Since when", "", *(line for search in report.searches[:3] for line in _search(search, level))]


def _search(search: Search, level: explain.Detail) -> list[str]:
    lines = [f"**Along {markdown(search.axis)}:** {markdown(short(search.sentence, max(level.text, 200)))}"]
    if search.link:
        lines += [
            "",
            f"Changes: <{search.link}>" if is_link(search.link) else f"Changes: {code(search.link)}",
        ]
    lines += [
        "",
        *(f"- {markdown(short(detail, level.text))}" for detail in search.details[: level.rows]),
    ]
    rows = [
        (
            code(tried.label, 80),
            f"{tried.failed}/{tried.trials}" if tried.trials else "-",
            f"{tried.replayed_failed}/{tried.replayed}" if tried.replayed else "-",
            "the change" if tried.first_bad else "",
        )
        for tried in search.tried[: level.rows]
    ]
    if rows:
        lines += ["", *table(("tried", "failed/trials>", "failing inputs replayed>", ""), rows)]
        lines += explain.left_out(len(search.tried), level.rows, "candidates")
    lines += [
        "",
        *(f"- cannot be tested: {markdown(short(each, 200))}" for each in search.untestable[: level.rows]),
    ]
    return [*lines, ""]


def _foot(report: Report, level: explain.Detail) -> list[str]:
    lines = []
    if report.elsewhere:
        lines += ["<details><summary>Other trials in the same ledger</summary>", ""]
        lines += [f"- {markdown(short(line))}" for line in report.elsewhere[: level.rows]]
        left_out = explain.left_out(len(report.elsewhere), level.rows, "tests and revisions")
        lines += [*left_out, "", "</details>", ""]
    seeds = [row for row in report.rates if row.failing_seeds]
    if seeds:
        lines += ["<details><summary>Failing seeds</summary>", ""]
        lines += [
            f"- {code(row.series.cell)}: {', '.join(map(str, row.failing_seeds))}{_dots(row)}"
            for row in seeds[: level.rows]
        ]
        lines += ["", "</details>", ""]
    return [*lines, f"Made by the repro kit {report.kit}."]


def _dots(row: CellRate) -> str:
    return " ..." if row.rate.failed > len(row.failing_seeds) and row.series.mode is Mode.SEEDS else ""
