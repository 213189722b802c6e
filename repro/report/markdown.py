"""The report as the body of one GitHub issue: verdict first, details in folds, always within the limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from repro import ui
from repro.report import words
from repro.report.environments import environment_table
from repro.report.inline import code, fence, is_link, markdown, short, table
from repro.report.model import Cause, CellRate, Failure, Report, Search
from repro.report.tables import failure_rows, other_rate_rows, pair_rows, rate_rows
from repro.trial.records import Mode

LIMIT = 65_536
"""Characters of an issue's body. Bytes are counted here, so that no way of counting exceeds it."""


@dataclass(frozen=True)
class Detail:
    """How much is shown: rows of a table, and characters of a text."""

    rows: int
    text: int


LEVELS = tuple(
    Detail(*level) for level in ((400, 2000), (120, 1000), (40, 500), (15, 250), (6, 120), (3, 80))
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


def _render(report: Report, level: Detail) -> str:
    sections: Sequence[Callable[[Report, Detail], list[str]]] = (
        _head, _rates, _other_rates, _cells, _since_when, _anatomy, _causes, _ruled_out, _script,
        _environment, _foot,
    )  # fmt: skip
    return "\n".join(line for section in sections for line in section(report, level)) + "\n"


def _cut(text: str, limit: int) -> str:
    """The beginning of a text that no level of detail makes short enough, to the last whole section."""
    note = "\n\nThe rest does not fit an issue; the HTML page has it.\n"
    kept = text.encode()[: limit - len(note.encode())].decode(errors="ignore")
    return kept[: kept.rfind("\n## ")].rstrip() + note


def _head(report: Report, level: Detail) -> list[str]:
    lines = [f"# {markdown(short(words.title(report), 300))}", ""]
    for question, line in words.verdict(report):
        lines += [f"- **{question}:** {markdown(short(line, max(level.text, 300)))}"]
    about = f"Trials of {code(report.test)} at revision {code(report.revision)}"
    about += f" of {code(report.origin)}" if report.origin else ""
    return [*lines, "", markdown(f"{about}. Every number below counts recorded trials."), ""]


def _rates(report: Report, level: Detail) -> list[str]:
    if not report.rates:
        return []
    columns, rows = rate_rows(report, level.rows)
    cells = len(rows) if len(report.gpus) == 1 else len(words.cells_of(report.rates))
    left_out = _left_out(cells, len(rows), "cells, with lower rates,")
    if len(report.gpus) == 1:
        left_out = _left_out(len(report.rates), len(rows), "cells, with lower rates,")
    notes = [f"- {markdown(note)}" for note in report.notes]
    return [
        "## Failure rates", "", words.RATES_HOW, "", *table(columns, rows), *left_out, "", *notes,
        *([""] if notes else []),
    ]  # fmt: skip


def _left_out(total: int, shown: int, noun: str) -> list[str]:
    return ["", f"{total - shown} more {noun} are on the HTML page."] if total > shown else []


def _other_rates(report: Report, level: Detail) -> list[str]:
    if not report.other_rates:
        return []
    told = table(*other_rate_rows(report, level.rows))
    left_out = _left_out(len(report.other_rates), level.rows, "rows")
    return ["### Other rates, never mixed with those", "", *told, *left_out, ""]


def _cells(report: Report, level: Detail) -> list[str]:
    pairing = report.pairing
    if not pairing.pairs:
        return []
    most = max(6, level.rows // 4)
    told = table(*pair_rows(pairing, most))
    left_out = _left_out(len(pairing.pairs), most, "comparisons")
    return ["## Which cells differ", "", markdown(words.paired_how(pairing)), "", *told, *left_out, ""]


def _since_when(report: Report, level: Detail) -> list[str]:
    if not report.searches:
        return ["## Since when", "", "Not searched: run `repro bisect`.", ""]
    return ["## Since when", "", *(line for search in report.searches[:3] for line in _search(search, level))]


def _search(search: Search, level: Detail) -> list[str]:
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
        lines += _left_out(len(search.tried), level.rows, "candidates")
    lines += [
        "",
        *(f"- cannot be tested: {markdown(short(each, 200))}" for each in search.untestable[: level.rows]),
    ]
    return [*lines, ""]


def _anatomy(report: Report, level: Detail) -> list[str]:
    anatomy = report.anatomy
    if not anatomy.failures:
        return []
    lines = [
        "## Anatomy of the failure",
        "",
        f"From {ui.count(anatomy.looked_at, 'failing trial')} that were read.",
        "",
    ]
    for failure in anatomy.failures[: min(4, level.rows)]:
        lines += _failure(failure, level)
    agreed = words.agreed(report)
    lines += [f"- {markdown(agreed)}"] if agreed else []
    for neighbour in anatomy.neighbours[:12]:
        lines.append(f"- {markdown(words.near(neighbour))}")
    lines += [f"- {markdown(line)}" for line in words.gap(anatomy)]
    return [*lines, ""]


def _failure(failure: Failure, level: Detail) -> list[str]:
    lines = [f"- {markdown(line)}" for line in words.failure_lines(failure)]
    if failure.worst:
        lines += ["", *table(*failure_rows(failure, level.rows)), ""]
    elif failure.message:
        lines += ["", *fence(failure.message[: level.text]), ""]
    return lines


def _causes(report: Report, level: Detail) -> list[str]:
    diagnosis = report.diagnosis
    lines = ["## Why", ""]
    if diagnosis.problem:
        return [*lines, f"{markdown(diagnosis.problem)}.", ""]
    if not diagnosis.causes:
        return [*lines, "Suspected causes are untested: run `repro diagnose`.", ""]
    lines += [markdown(short(line, level.text)) for line in diagnosis.conclusion[: level.rows]]
    lines += [""] if diagnosis.conclusion else []
    for cause in diagnosis.of("supported"):
        lines += _cause(cause, level)
    if not diagnosis.of("supported"):
        lines += ["No suspected cause is supported by the evidence.", ""]
    lines += [part for line in words.predicted(report) for part in (markdown(line), "")]
    if diagnosis.minimized:
        lines += [
            "Smallest case that still fails:",
            "",
            *fence("\n".join(diagnosis.minimized)[: level.text]),
            "",
        ]
    if diagnosis.advice:
        lines += ["What to do:", ""]
        lines += [f"- {markdown(short(line, level.text))}" for line in diagnosis.advice[: level.rows]]
        lines += [""]
    lines += _experiments(report, level)
    untested = diagnosis.of("untested")
    if untested:
        lines += [f"Untested: {markdown(', '.join(cause.name for cause in untested))}.", ""]
    return lines


def _experiments(report: Report, level: Detail) -> list[str]:
    """What the causes were weighed by."""
    diagnosis = report.diagnosis
    lines = [markdown(diagnosis.about), ""] if diagnosis.about else []
    if diagnosis.experiments:
        lines += ["<details><summary>What was run for this</summary>", ""]
        lines += [f"- {markdown(short(line, level.text))}" for line in diagnosis.experiments[: level.rows]]
        lines += ["", "</details>", ""]
    return lines


def _cause(cause: Cause, level: Detail) -> list[str]:
    share = "" if cause.share is None else f", explains {ui.percent(cause.share)} of the failing elements"
    lines = [f"**{markdown(short(cause.name))}**: {cause.verdict}{share}", ""]
    return [
        *lines,
        *(f"- {markdown(short(each, level.text))}" for each in cause.evidence[: level.rows]),
        "",
    ]


def _ruled_out(report: Report, level: Detail) -> list[str]:
    causes = report.diagnosis.of("ruled out")
    if not causes:
        return []
    rows = [
        f"- **{markdown(short(cause.name))}**: "
        + markdown(short("; ".join(cause.evidence[: level.rows]) or "no evidence is given", level.text))
        for cause in causes
    ]
    return ["## Ruled out", "", *rows, ""]


def _script(report: Report, level: Detail) -> list[str]:
    proof = report.proof
    lines = ["## A script that shows it, without pytest", ""]
    if proof.refused:
        lead = "Not shown" if proof.script else "There is none"
        lines += [f"{lead}: {markdown(short(proof.refused, 400))}.", ""]
    if not proof.script or len(proof.script) > 12_000:
        return lines if proof.refused else [*lines, "It is in the evidence.", ""]
    if proof.shown:
        lines += [markdown(words.ran(proof)), ""]
    return [*lines, *fence(proof.script, "python"), *_printed(report, level), ""]


def _printed(report: Report, level: Detail) -> list[str]:
    proof = report.proof
    return ["", "It printed:", "", *fence(proof.printed[-level.text :])] if proof.printed else []


def _environment(report: Report, level: Detail) -> list[str]:
    common, columns, rows = environment_table(report.environments)
    if not common and not rows:
        return []
    lines = ["## Environment", "", "<details><summary>The same in all cells</summary>", ""]
    lines += [
        *table(("", ""), [(name, code(value, level.text)) for name, value in common[: level.rows * 4]]),
        "",
    ]
    lines += ["</details>", ""]
    if rows:
        shown = [(code(cell), *(code(value, 80) for value in values)) for cell, values in rows[: level.rows]]
        lines += [
            "<details><summary>What differs from cell to cell; environment.json has all of it</summary>",
            "",
        ]
        lines += [
            *table(("cell", *map(markdown, columns)), shown),
            *_left_out(len(rows), level.rows, "cells"),
            "",
            "</details>",
            "",
        ]
    return lines


def _foot(report: Report, level: Detail) -> list[str]:
    lines = []
    if report.elsewhere:
        lines += ["<details><summary>Other trials in the same ledger</summary>", ""]
        lines += [f"- {markdown(short(line))}" for line in report.elsewhere[: level.rows]]
        lines += [*_left_out(len(report.elsewhere), level.rows, "tests and revisions"), "", "</details>", ""]
    seeds = [row for row in report.rates if row.failing_seeds]
    if seeds:
        lines += ["<details><summary>Failing seeds</summary>", ""]
        lines += [
            f"- {code(row.series.cell)}: {', '.join(map(str, row.failing_seeds))}{_and_left_out(row)}"
            for row in seeds[: level.rows]
        ]
        lines += ["", "</details>", ""]
    return [*lines, f"Made by the repro kit {report.kit}."]


def _and_left_out(row: CellRate) -> str:
    return " ..." if row.rate.failed > len(row.failing_seeds) and row.series.mode is Mode.SEEDS else ""
