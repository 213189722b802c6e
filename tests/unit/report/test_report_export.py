"""Rates for other programs."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ET

from report_ledgers import A100, CELLS, TEST, flake, open_ledger, write_cell

from repro.report.export import to_csv, to_junit
from repro.stats import anytime
from repro.store import Series, Tally
from repro.trial.records import Mode, Outcome


def tallies(home):
    with open_ledger(home) as ledger:
        return ledger.tallies()


def test_csv(home):
    flake(home)
    write_cell(home, "g", CELLS[0], failing=(), trials=3, gpu=A100, outcome="CRASHED")
    rows = list(csv.DictReader(to_csv(tallies(home)).splitlines()))
    assert len(rows) == 4
    row = next(row for row in rows if row["gpu"] != A100)
    assert (row["cell"], row["test"], row["failed"], row["trials"], row["rate"]) == (
        CELLS[0],
        TEST,
        "4",
        "40",
        "0.1",
    )
    assert float(row["high"]) == round(anytime(4, 40).high, 6)


def test_csv_is_no_formula():
    series = Series(cell="=1+1", revision="@a", test="-b", mode=Mode.SEEDS)
    (row,) = csv.DictReader(to_csv([Tally(series=series, counts={Outcome.PASSED: 1})]).splitlines())
    assert (row["cell"], row["revision"], row["test"]) == ("'=1+1", "'@a", "'-b")


def test_junit(home):
    flake(home, cells=CELLS[:2])
    write_cell(home, "c", CELLS[2], failing=(0, 1, 2), trials=3, outcome="CRASHED")
    write_cell(home, "d", CELLS[2], failing=(), trials=5, gpu=A100)
    root = ET.fromstring(to_junit(tallies(home)))
    suites = {suite.get("name"): suite for suite in root}
    assert [suites[cell].get("failures") for cell in CELLS] == ["1", "1", "0"]
    assert suites[CELLS[2]].get("errors") == "1"
    assert suites[CELLS[2]].get("tests") == "2"
    failure = suites[CELLS[0]].find("testcase/failure")
    assert failure.get("message").startswith("4 of 40 trials failed: 10.0 % (")
    assert suites[CELLS[2]].find("testcase/error").get("message") == "no trial passed or failed: 3 CRASHED"


def test_junit_of_names_that_xml_cannot_hold():
    series = Series(cell="a\x00b<", revision="r", test='"t&\x1b', mode=Mode.SEEDS)
    root = ET.fromstring(to_junit([Tally(series=series, counts={Outcome.FAILED: 1})]))
    assert root[0].get("name") == "a\ufffdb<"
