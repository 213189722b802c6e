"""The parts of the issue text that explain: what fails, why, the script, the environment."""

from __future__ import annotations

from dataclasses import dataclass

from repro import ui
from repro.report import words
from repro.report.environments import environment_table
from repro.report.inline import code, fence, markdown, short, table
from repro.report.model import Cause, Failure, Report
from repro.report.tables import failure_rows


@dataclass(frozen=True)
class Detail:
    """How much is shown: rows of a table, and characters of a text."""

    rows: int
    text: int


def anatomy(report: Report, level: Detail) -> list[str]:
    """What failures look like."""
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


def causes(report: Report, level: Detail) -> list[str]:
    """Suspected causes with their evidence."""
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


def ruled_out(report: Report, level: Detail) -> list[str]:
    """What was ruled out."""
    causes = report.diagnosis.of("ruled out")
    if not causes:
        return []
    rows = [
        f"- **{markdown(short(cause.name))}**: "
        + markdown(short("; ".join(cause.evidence[: level.rows]) or "no evidence is given", level.text))
        for cause in causes
    ]
    return ["## Ruled out", "", *rows, ""]


def script(report: Report, level: Detail) -> list[str]:
    """The standalone script, and what came of running it."""
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


def environment(report: Report, level: Detail) -> list[str]:
    """What the cells imported, in folds."""
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
            *left_out(len(rows), level.rows, "cells"),
            "",
            "</details>",
            "",
        ]
    return lines


def left_out(total: int, shown: int, noun: str) -> list[str]:
    """What is not shown here, and where it is."""
    return ["", f"{total - shown} more {noun} are on the HTML page."] if total > shown else []
