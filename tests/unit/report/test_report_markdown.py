"""The issue text: golden, within the limit whatever the ledger holds, and proof against hostile names."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from report_examples import DIAGNOSIS, PROOF, SEARCH, filled
from report_ledgers import A100, CELLS, SIGNATURE, flake, write_cell

from repro.report import LIMIT, Redactor, redacted_report, to_markdown
from repro.report.model import CellFacts, Proof, Tried
from repro.report.redact import Names

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = (
    "test_x[`|<script>alert(1)</script> @octocat #1 ![i](http://evil.example/x.png)\u202e\n# Own heading|`]"
)


def check(name, text):
    """Compare with the golden file; REPRO_UPDATE_GOLDEN=1 writes it anew."""
    path = GOLDEN / name
    if os.environ.get("REPRO_UPDATE_GOLDEN") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.fixture
def everything(home, told):
    write_cell(home, "r", CELLS[1], failing=range(20), trials=20, mode="repeat")
    flake(home)
    report = redacted_report(filled(told()), Redactor(names=Names()))
    return replace(report, elsewhere=["test_other at abc: 0 of 90 failed"])


def test_everything(everything):
    check("everything.md", to_markdown(everything))


def test_little(home, told):
    write_cell(home, "b0", CELLS[0], failing=(), trials=5, gpu="")
    check("little.md", to_markdown(replace(told(), kit="1.2.3", proof=Proof(refused="no trial has failed"))))


def test_a_column_for_each_gpu_model(home, told):
    write_cell(home, "b0", CELLS[0], failing=(1,), trials=20)
    write_cell(home, "b1", CELLS[0], failing=(1, 2), trials=20, gpu=A100)
    write_cell(home, "b2", CELLS[1], failing=(), trials=20, gpu=A100)
    text = to_markdown(told())
    assert "| cell | NVIDIA A100 | NVIDIA H200 |" in text
    assert re.search(rf"\| `{CELLS[0]}` \| 2/20: 10.0 % \(.*?\) \| 1/20: 5.0 % \(.*?\) \|", text)
    assert re.search(rf"\| `{CELLS[1]}` \| 0/20: 0 % \(.*?\) \| not run \|", text)


def test_verdict_first_and_in_five_lines(everything):
    lines = to_markdown(everything).splitlines()
    assert lines[0].startswith("# ")
    assert sum(line.startswith("- **") for line in lines[:8]) == 5
    order = [
        "Failure rates",
        "Which cells differ",
        "Since when",
        "Anatomy of the failure",
        "Why",
        "Ruled out",
    ]
    heads = [line[3:] for line in lines if line.startswith("## ")]
    assert heads == [*order, "A script that shows it, without pytest", "Environment"]


@pytest.mark.parametrize("long", [40, 4000])
@pytest.mark.parametrize("cells", [3, 300])
def test_it_fits_whatever_the_ledger_holds(everything, cells, long):
    rates, pairs = everything.rates, everything.pairing.pairs
    series = [replace(rates[0].series, cell=f"torch2.{n}.0-triton3.{n}.0-{'x' * 60}") for n in range(cells)]
    failure = replace(everything.anatomy.failures[0], worst=(), message="`" * long, source="s" * long)
    cause = replace(DIAGNOSIS.causes[0], evidence=["e" * long] * 50)
    tried = [Tried(label="t" * long, failed=1, trials=2)] * 300
    report = replace(
        everything,
        rates=[replace(rates[0], series=each, failing_seeds=range(40)) for each in series],
        other_rates=[replace(everything.other_rates[0], series=each) for each in series],
        pairing=replace(everything.pairing, pairs=[replace(pairs[0], a=each) for each in series] * 9),
        anatomy=replace(
            everything.anatomy, failures=[failure] * 200, neighbours=everything.anatomy.neighbours * 60
        ),
        diagnosis=replace(
            DIAGNOSIS,
            causes=[cause] * 12 + [replace(cause, verdict="ruled out")] * 12,
            minimized=["m" * long] * 50,
            conclusion=["c" * long] * 50,
            advice=["a" * long] * 50,
            experiments=["x" * long] * 500,
        ),
        searches=[replace(SEARCH, sentence="w" * long, tried=tried, details=["d" * long] * 9)] * 3,
        proof=replace(PROOF, printed="p" * long * 10, script="# é\n" * 80),
        elsewhere=["w" * long] * 500,
        environments=[
            CellFacts(cell=each.cell, facts={f"{each.cell} {name}": "v" * long for name in range(3)})
            for each in series
        ],
        notes=["n" * long] * 4,
    )
    text = to_markdown(report)
    assert len(text.encode()) <= LIMIT
    assert text.startswith("# ")
    assert "## A script" in text or "does not fit an issue" in text


def test_a_long_script_is_in_the_evidence(everything):
    text = to_markdown(replace(everything, proof=replace(PROOF, script="#" * 20_000)))
    assert "It is in the evidence." in text


def test_hostile_names_cannot_break_out(home, told):
    write_cell(home, "b0", HOSTILE, failing=(1,), test=HOSTILE, message=HOSTILE, revision=HOSTILE)
    signature = {**SIGNATURE, "source": HOSTILE, "key": HOSTILE}
    write_cell(home, "b1", "c2", failing=(1,), test=HOSTILE, revision=HOSTILE, signature=signature)
    report = replace(
        told(), searches=[replace(SEARCH, link="javascript:alert(1)", sentence=HOSTILE, axis=HOSTILE)]
    )
    text = to_markdown(replace(report, proof=Proof(refused=HOSTILE)))
    outside = "\n".join(re.sub(r"(`+)[^\n]*?\1", "", line) for line in text.splitlines())
    outside = re.sub(r"</?(?:details|summary)>|<!-- -->", "", outside)
    assert "<" not in outside.replace("&lt;", "")
    assert not re.search(r"(?<!\\)!?(?<!\\)\[i\]", outside)
    assert not re.search(r"[@#]\w", outside.replace("# test", ""))
    assert "\u202e" not in text
    assert text.count("\n# ") == 0
    assert "](javascript" not in text
    assert "<javascript" not in text


def test_fences_are_longer_than_what_they_hold(everything):
    script = "````\nprint()\n`````\n"
    text = to_markdown(replace(everything, proof=replace(PROOF, script=script)))
    assert f"``````python\n{script}``````" in text


def test_a_script_that_did_not_show_it_says_so(everything):
    proof = replace(PROOF, status=0, refused="it ran the test 300 times, and the failure did not show")
    text = to_markdown(replace(everything, proof=proof))
    assert "Not shown: it ran the test 300 times" in text
    assert "as it promises" not in text
