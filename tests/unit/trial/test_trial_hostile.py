"""Tests that try to be more than tests: ids that are commands, a conftest.py that writes to the records."""

from __future__ import annotations

import json

import pytest

from repro.run.settling import settle
from repro.store import Ledger
from repro.trial.records import Event

IDS = ["$(touch pwned)", "; touch pwned;", "`touch pwned`", "| touch pwned", "--pdb", "../../pwned", "a b"]


@pytest.mark.parametrize("name", IDS)
def test_a_test_id_is_no_command(run_block, tmp_path, name):
    code = f"import pytest\n\n\n@pytest.mark.parametrize('a', [{name!r}])\ndef test_it(a):\n    pass\n"
    done = run_block({"test_subject.py": code}, test=f"test_it[{name}]", seeds=[1])
    assert done.outcomes == ["PASSED"], done.stderr
    assert not list(tmp_path.rglob("*pwned*"))


FORGING = """
import json
import os
from pathlib import Path

RECORDS = Path({records!r})


def write(**event):
    with RECORDS.open("a") as file:
        file.write(json.dumps(event) + "\\n")


write(event="end", seed=[1], trial=0, outcome="PASSED")
write(event="end", seed=1, trial=0, outcome="SPLENDID")
write(event="cell", gpu={{"name": 7}}, imported=3, schema="x")
write(event="tests", ids=[[1]])
print("x" * 5_000_000)


def pytest_runtest_teardown():
    with RECORDS.open("a") as file:
        file.write("{{no record" * 3 + "\\n")
"""


def test_what_a_conftest_forges_counts_as_far_as_it_is_sound(run_block, tmp_path):
    """It can lie about itself, as any test can; it breaks nothing, and its neighbours' results stand."""
    records = tmp_path / "records0" / "records.jsonl"
    test = "def test_it():\n    assert True\n"
    files = {"conftest.py": FORGING.format(records=str(records)), "test_subject.py": test}
    with pytest.raises(json.JSONDecodeError):  # by the eyes of this test's own reader
        run_block(files, seeds=[1, 2, 3])
    assert settle(records, None, 5.0).ended == 3
    asked = json.loads((records.parent / "request.json").read_text())
    about = {"cell": "torch2.9", "subject": "abc", "mode": "seeds"}
    (records.parent / "request.json").write_text(json.dumps({**asked, **about}))
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ledger.ingest(records.parent)
        counts = {tally.series.cell: tally.n for tally in ledger.tallies()}
        assert counts == {"torch2.9": 3}
        assert sum(ledger.garbled_lines().values()) == 7  # four that are forged, and three without an end
    assert records.stat().st_size < 100_000
    assert Event.END.value in records.read_text()
