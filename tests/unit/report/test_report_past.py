"""What searches and the diagnosis left behind, whole or broken."""

from __future__ import annotations

import json
import os

from report_ledgers import TEST, flake

from repro.report.past import read_diagnosis, read_searches
from repro.report.verdict import verdict

RATE = {"failed": 0, "trials": 44, "rate": 0.0, "low": 0.0, "high": 0.117}
ANSWER = {
    "kind": "appears", "first_bad": "3.6.0", "low": "3.5.1", "high": "3.6.0", "confidence": 0.97,
    "rate_before": RATE, "rate_after": {"failed": 5, "trials": 20, "rate": 0.25, "low": 0.1, "high": 0.5},
    "trials": 64, "builds": 3, "skipped": ["3.5.0"], "axis": "triton", "method": "rates", "reproduced": True,
    "final": True, "candidates": 4, "oldest": "3.4.0", "newest": "3.6.0",
    "tried": [
        {"candidate": "3.5.1", "label": "triton 3.5.1", "failed": 0, "trials": 44, "others": {},
         "replayed": {"failed": 0, "trials": 9}},
        {"candidate": "3.6.0", "label": "triton 3.6.0", "failed": 5, "trials": 20, "others": {},
         "replayed": {"failed": 9, "trials": 9}},
    ],
    "findings": [
        {"candidate": "3.5.0", "label": "triton 3.5.0", "outcome": "BUILD_FAILED", "message": "no\nwheel"}
    ],
    "belief": [
        {"low": "3.4.0", "high": "3.5.1", "probability": 0.03},
        {"low": "3.5.1", "high": "3.6.0", "probability": 0.97},
    ],
    "notes": ["the host engine searches commits only"],
    "split": {"said": "Triton alone makes the difference", "parts": ["triton"]},
    "link": "https://example.org/compare/a...b",
}  # fmt: skip


def write(home, name, answer, **about):
    folder = home / "searches"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"about": {"test": TEST, **about}, "answer": answer}))


def sentence(home, **changes):
    write(home, "a", {**ANSWER, **changes})
    return read_searches(home, TEST)[0].sentence


def test_an_answer(home):
    write(home, "a", ANSWER)
    (search,) = read_searches(home, TEST)
    assert search.sentence == (
        "It first fails at triton 3.6.0: 0 of 44 (0 %; 0 % to 11.7 %) before,"
        " 5 of 20 (25.0 %; 10.0 % to 50.0 %) from there on; confidence 97.0 %."
    )
    assert [(tried.label, tried.first_bad, tried.replayed_failed) for tried in search.tried] == [
        ("triton 3.5.1", False, 0),
        ("triton 3.6.0", True, 9),
    ]
    assert search.untestable == ["triton 3.5.0: BUILD_FAILED, no wheel"]
    assert search.details[1:] == [
        "Triton alone makes the difference",
        "the host engine searches commits only",
    ]
    assert search.belief == [
        ("after triton 3.5.1, not after triton 3.6.0", 0.97),
        ("after 3.4.0, not after triton 3.5.1", 0.03),
    ]
    assert search.link == ANSWER["link"]
    assert search.decided


def test_other_answers(home):
    assert sentence(home, kind="throughout", first_bad=None).startswith(
        "Nothing changed: it fails throughout, 5 of 20"
    )
    assert sentence(home, kind="absent", reproduced=False).startswith("It was not seen to fail: 5 of 20")
    assert sentence(home, kind="inconclusive", first_bad=None, low=None, high=None).startswith(
        "No answer: 0 of 44"
    )
    assert sentence(home, first_bad=None).startswith(
        "It changes after triton 3.5.1 and not after triton 3.6.0:"
    )
    assert sentence(home, kind="falls").startswith("It fails less often from triton 3.6.0:")


def test_files_that_hold_no_answer(home):
    write(home, "unfinished", None)
    write(home, "older", {"kind": "appears"})
    write(home, "of another test", ANSWER, test="test_other")
    (home / "searches" / "torn.json").write_text('{"about"')
    assert read_searches(home, TEST) == []
    assert read_searches(home / "nowhere", TEST) == []


def since_when(report):
    return dict(verdict(report))["Since when"]


def test_the_verdict_names_every_axis_that_was_searched(home, told):
    flake(home)
    nothing = {**ANSWER, "kind": "throughout", "first_bad": None}
    write(home, "torch", {**nothing, "axis": "torch"})
    throughout = (
        "Nothing changed: it fails throughout, 5 of 20 (25.0 %; 10.0 % to 50.0 %); confidence 97.0 %."
    )
    assert since_when(told()) == throughout
    write(home, "ptxas", {**nothing, "axis": "ptxas"})
    os.utime(home / "searches" / "torch.json", (1, 1))
    assert since_when(told()) == f"{throughout} Nothing changed along torch either."


def test_the_verdict_begins_with_the_change_whatever_was_searched_last(home, told):
    flake(home)
    write(home, "triton", ANSWER)
    write(home, "ptxas", {**ANSWER, "axis": "ptxas", "kind": "inconclusive", "first_bad": None, "high": None})
    write(home, "older", {**ANSWER, "kind": "throughout"})
    write(home, "torch", {**ANSWER, "axis": "torch", "kind": "absent"})
    for when, name in enumerate(("older", "triton", "ptxas", "torch")):
        os.utime(home / "searches" / f"{name}.json", (when, when))
    told_when = since_when(told())
    assert told_when.startswith("It first fails at triton 3.6.0: ")
    assert " Along ptxas: No answer: 0 of 44" in told_when
    assert told_when.endswith(" Nothing changed along torch.")
    assert "throughout" not in told_when


def diagnosis(home, **held):
    home.mkdir(exist_ok=True)
    (home / "diagnosis.json").write_text(json.dumps(held))
    return read_diagnosis(home, TEST, "abc")


def test_a_diagnosis(home):
    cause = {"name": "a race", "verdict": "ruled out", "evidence": ["40 of 40"], "share": None}
    found = diagnosis(
        home, test=TEST, cell="c", revision="def", causes=[cause], conclusion=["so"],
        jumps=[{"coordinate": 2.9, "place": 3.0, "distance_ulp": 0.5}],
        minimized={"B": 1, "levels": [[2, 2]]}, predicted_rate=0.08, advice=["do"], experiments=["ran"],
    )  # fmt: skip
    assert (found.causes[0].name, found.causes[0].verdict, list(found.causes[0].evidence)) == (
        "a race",
        "ruled out",
        ["40 of 40"],
    )
    assert (list(found.conclusion), list(found.minimized)) == (["so"], ["B: 1", "levels: [[2, 2]]"])
    assert found.offsets == [-0.5]
    assert (found.predicted_rate, found.about) == (
        0.08,
        "Weighed in `c`, at another revision than the trials above: `def`.",
    )


def test_no_diagnosis_and_broken_ones(home, told):
    flake(home)
    assert dict(verdict(told()))["Why"] == "Untested: run `repro diagnose`."
    assert diagnosis(home, causes=[{"name": "x", "verdict": "maybe"}]).problem
    assert diagnosis(home, nothing=1).problem
    assert "`test_other`" in diagnosis(home, test="test_other", causes=[]).problem
    (home / "diagnosis.json").write_text("{")
    assert "`repro diagnose` writes it anew" in dict(verdict(told()))["Why"]


def test_the_verdict_counts_causes(home, told):
    flake(home)
    causes = [{"name": name, "verdict": "ruled out", "evidence": []} for name in "ab"]
    diagnosis(home, causes=causes)
    assert dict(verdict(told()))["Why"] == "No suspected cause is supported; 2 ruled out."
    diagnosis(
        home, causes=[{"name": "a jump", "verdict": "supported", "evidence": [], "share": 0.97}, *causes]
    )
    told_why = dict(verdict(told()))["Why"]
    assert told_why == "A jump (97.0 % of the failing elements); 2 other causes ruled out."
