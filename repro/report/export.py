"""The ledger's rates for other programs: CSV, JUnit's XML."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from repro import ui
from repro.stats import anytime
from repro.store import Tally

COLUMNS = (
    "cell", "revision", "test", "mode", "gpu", "failed", "trials", "rate", "low", "high", "confidence",
    "interval", "others",
)  # fmt: skip

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_csv(tallies: Sequence[Tally]) -> str:
    """A row a series; intervals are of 95 % and valid however sampling was stopped."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for tally in tallies:
        series, rate = tally.series, anytime(tally.failed, tally.n)
        texts = [
            _text(each) for each in (series.cell, series.revision, series.test, series.mode.value, series.gpu)
        ]
        shares = ["" if rate.rate is None else f"{rate.rate:.6g}", f"{rate.low:.6g}", f"{rate.high:.6g}"]
        others = " ".join(f"{outcome.value}={number}" for outcome, number in sorted(tally.others.items()))
        writer.writerow([*texts, tally.failed, tally.n, *shares, rate.confidence, rate.method.value, others])
    return out.getvalue()


def _text(value: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{value}" if value.startswith(_FORMULA) else value


def to_junit(tallies: Sequence[Tally]) -> str:
    """JUnit's XML: a suite a cell, a case a series; a case that failed once is a failure, with its rate.

    Without a trial that passed or failed a case is an error where trials ended otherwise.
    """
    root = ET.Element("testsuites", name="repro")
    suites: dict[str, ET.Element] = {}
    for tally in tallies:
        cell = tally.series.cell
        if cell not in suites:
            suites[cell] = ET.SubElement(root, "testsuite", name=_xml(cell))
        _case(suites[cell], tally)
    for suite in suites.values():
        cases = suite.findall("testcase")
        suite.set("tests", str(len(cases)))
        suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
        suite.set("errors", str(sum(case.find("error") is not None for case in cases)))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, tally: Tally) -> None:
    series = tally.series
    where = " ".join(part for part in (series.mode.value, series.gpu, series.revision[:20]) if part)
    case = ET.SubElement(
        suite, "testcase", name=_xml(series.test), classname=_xml(f"{series.cell} ({where})")
    )
    rate = anytime(tally.failed, tally.n)
    others = ui.outcomes(tally.others)
    if tally.failed:
        share = ui.percent(tally.failed / tally.n)
        between = f"{ui.percent(rate.low)} to {ui.percent(rate.high)}"
        interval = f"{between}; interval of {100 * rate.confidence:g} %, {rate.method.said}"
        told = f"{tally.failed} of {ui.count(tally.n, 'trial')} failed: {share} ({interval})"
        ET.SubElement(case, "failure", message=told, type="FAILED").text = others or None
    elif not tally.n and others:
        ET.SubElement(case, "error", message=f"no trial passed or failed: {others}", type="OTHER")
    ET.SubElement(case, "system-out").text = f"{ui.count(tally.n, 'trial')}, {tally.failed} failed" + (
        f"; {others}" if others else ""
    )


def _xml(text: str) -> str:
    """Text without characters that XML has no way to write."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)
