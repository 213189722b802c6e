"""The report as one HTML file: inline style and SVG, no script, nothing fetched, every text escaped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from repro import ui
from repro.report import words
from repro.report.charts import belief_chart, error_chart, jump_chart, place_chart, rate_chart, search_chart
from repro.report.environments import environment_table
from repro.report.inline import code, is_link, short
from repro.report.inline import to_html as inline
from repro.report.model import Cause, Failure, Report, Search
from repro.report.style import STYLE
from repro.report.tables import failure_rows, other_rate_rows, pair_rows, rate_rows
from repro.report.verdict import title, verdict

ROWS = 1000
"""Rows of a table, at most."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def to_html(report: Report) -> str:
    """The whole page."""
    sections: Sequence[Callable[[Report], str]] = (
        _head, _rates, _cells, _since_when, _anatomy, _why, _ruled_out, _script, _environment, _foot,
    )  # fmt: skip
    body = "\n".join(part for section in sections if (part := section(report)))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex">\n'
        f"<title>{escape(short(title(report), 200))}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _head(report: Report) -> str:
    rows = "".join(
        f"<div><dt>{escape(lead)}</dt><dd>{inline(line)}</dd></div>" for lead, line in verdict(report)
    )
    about = f"Revision {code(report.revision)}" + (f" of {code(report.origin)}" if report.origin else "")
    return (
        f"<header><h1>{escape(short(title(report), 400))}</h1>"
        f'<p class="about">{inline(about)}. Every number counts recorded trials.</p></header>\n'
        f'<dl class="verdict">{rows}</dl>'
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, wrap: bool = False) -> str:
    """A table that scrolls sideways where it is too wide; columns with a trailing `>` are right-aligned."""
    right = [column.endswith(">") for column in columns]
    heads = "".join(
        f'<th scope="col"{_class(at)}>{escape(name.rstrip(">"))}</th>'
        for name, at in zip(columns, right, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{_class(at, wrap)}>{inline(value)}</td>" for value, at in zip(row, right, strict=True))
        + "</tr>"
        for row in rows[:ROWS]
    )
    more = (
        f'<p class="note">{len(rows) - ROWS:,} more rows are in the evidence.</p>' if len(rows) > ROWS else ""
    )
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{table}</div>{more}'


def _class(right: bool, wrap: bool = False) -> str:
    return ' class="right"' if right else ' class="wrap"' if wrap else ""


def _items(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{inline(line)}</li>' for line in lines)}</ul>" if lines else ""


def _rates(report: Report) -> str:
    if not (report.rates or report.other_rates):
        return ""
    parts = ["<section><h2>Failure rates</h2>"]
    if report.rates:
        shown = [row for row in report.rates if row.rate.trials][:ROWS]
        parts += [rate_chart(shown, many_gpus=len(report.gpus) > 1)] if shown else []
        parts += [_table(*rate_rows(report)), f'<p class="note">{inline(words.RATES_HOW)}</p>']
    parts.append(_items(report.notes))
    if report.other_rates:
        parts += ["<h3>Other rates, never mixed with those</h3>", _table(*other_rate_rows(report))]
    return "".join([*parts, "</section>"])


def _cells(report: Report) -> str:
    if not report.pairing.pairs:
        return ""
    how = f"<p>{inline(words.paired_how(report.pairing))}</p>"
    return f"<section><h2>Which cells differ</h2>{how}{_table(*pair_rows(report.pairing))}</section>"


def _since_when(report: Report) -> str:
    if not report.searches:
        return f"<section><h2>Since when</h2><p>{inline('Not searched: run `repro bisect`.')}</p></section>"
    return "<section><h2>Since when</h2>" + "".join(map(_search, report.searches[:6])) + "</section>"


def _search(search: Search) -> str:
    link = ""
    if search.link:
        shown = escape(search.link)
        link = (
            f'<p><a rel="noreferrer" href="{shown}">{shown}</a></p>'
            if is_link(search.link)
            else f"<p>{shown}</p>"
        )
    chart = belief_chart(search) + (search_chart(search) if search.tried else "")
    untestable = _items([f"cannot be tested: {each}" for each in search.untestable[:ROWS]])
    head = f"<h3>Along {escape(search.axis)}</h3><p>{inline(search.sentence)}</p>"
    return f"{head}{link}{chart}{_items(search.details)}{untestable}"


def _anatomy(report: Report) -> str:
    anatomy = report.anatomy
    if not anatomy.failures:
        return ""
    agreed = words.agreed(report)
    lines = [*([agreed] if agreed else []), *map(words.near, anatomy.neighbours), *words.gap(anatomy)]
    return (
        "<section><h2>Anatomy of the failure</h2>"
        f"<p>From {ui.count(anatomy.looked_at, 'failing trial')} that were read.</p>"
        + "".join(map(_failure, anatomy.failures[:6]))
        + _items(lines)
        + error_chart(anatomy)
        + place_chart(anatomy.dimensions)
        + "</section>"
    )


def _failure(failure: Failure) -> str:
    lines = _items(words.failure_lines(failure))
    if failure.worst:
        return lines + _table(*failure_rows(failure))
    return lines + (f"<pre>{escape(failure.message[:2000])}</pre>" if failure.message else "")


def _why(report: Report) -> str:
    diagnosis = report.diagnosis
    parts = ["<section><h2>Why</h2>"]
    if diagnosis.problem:
        parts.append(f"<p>{inline(diagnosis.problem)}.</p>")
    elif not diagnosis.causes:
        parts.append(f"<p>{inline('Suspected causes are untested: run `repro diagnose`.')}</p>")
    else:
        parts += [f"<p>{inline(line)}</p>" for line in diagnosis.conclusion]
        parts += map(_cause, diagnosis.of("supported"))
        if not diagnosis.of("supported"):
            parts.append("<p>No suspected cause is supported by the evidence.</p>")
    parts += [f"<p>{inline(line)}</p>" for line in words.predicted(report)]
    parts.append(jump_chart(diagnosis.offsets))
    if diagnosis.minimized:
        smallest = escape("\n".join(diagnosis.minimized))
        parts.append(f"<h3>Smallest case that still fails</h3><pre>{smallest}</pre>")
    parts += ["<h3>What to do</h3>", _items(diagnosis.advice)] if diagnosis.advice else []
    parts.append(f"<p>{inline(diagnosis.about)}</p>" if diagnosis.about else "")
    if diagnosis.experiments:
        run = _items(diagnosis.experiments[:ROWS])
        parts.append(f"<details><summary>What was run for this</summary>{run}</details>")
    untested = ", ".join(cause.name for cause in diagnosis.of("untested"))
    parts.append(f"<p>Untested: {inline(untested)}.</p>" if untested else "")
    return "".join([*parts, "</section>"])


def _cause(cause: Cause) -> str:
    share = "" if cause.share is None else f", explains {ui.percent(cause.share)} of the failing elements"
    tag = f'<span class="tag">{escape(cause.verdict + share)}</span>'
    kind = "supported" if cause.verdict == "supported" else "other"
    return f'<div class="cause {kind}"><h3>{inline(cause.name)}{tag}</h3>{_items(cause.evidence)}</div>'


def _ruled_out(report: Report) -> str:
    causes = report.diagnosis.of("ruled out")
    return f"<section><h2>Ruled out</h2>{''.join(map(_cause, causes))}</section>" if causes else ""


def _script(report: Report) -> str:
    proof = report.proof
    parts = ["<section><h2>A script that shows it, without pytest</h2>"]
    if proof.refused:
        lead = "Not shown" if proof.script else "There is none"
        parts.append(f"<p>{lead}: {inline(proof.refused)}.</p>")
    if proof.shown:
        parts.append(f"<p>{inline(words.ran(proof))}</p>")
    if proof.script:
        parts.append(f"<pre>{escape(proof.script)}</pre>")
    if proof.printed:
        parts.append(f"<h3>It printed</h3><pre>{escape(proof.printed[-4000:])}</pre>")
    return "".join([*parts, "</section>"])


def _environment(report: Report) -> str:
    common, columns, rows = environment_table(report.environments)
    if not common and not rows:
        return ""
    parts = ["<section><h2>Environment</h2><details><summary>The same in all cells</summary>"]
    parts += [_table(("", ""), [(name, code(value, 400)) for name, value in common], wrap=True), "</details>"]
    if rows:
        shown = [(code(cell), *(code(value, 120) for value in values)) for cell, values in rows]
        parts.append(
            "<details><summary>What differs from cell to cell; environment.json has all of it</summary>"
        )
        parts += [_table(("cell", *columns), shown), "</details>"]
    return "".join([*parts, "</section>"])


def _foot(report: Report) -> str:
    parts = []
    seeds = [
        f"{code(row.series.cell)}: {', '.join(map(str, row.failing_seeds))}"
        for row in report.rates
        if row.failing_seeds
    ]
    if seeds:
        parts.append(
            "<details><summary>Failing seeds, the first of each cell</summary>"
            f"{_items(seeds[:ROWS])}</details>"
        )
    if report.elsewhere:
        shown = _items([code(line, 300) for line in report.elsewhere[:ROWS]])
        parts.append(f"<details><summary>Other trials in the same ledger</summary>{shown}</details>")
    return "".join([*parts, f"<footer>Made by the repro kit {escape(report.kit)}.</footer>"])
