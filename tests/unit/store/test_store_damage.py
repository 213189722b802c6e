"""Block files that are cut, garbled or incomplete: never a wrong number."""

from __future__ import annotations

import itertools

import pytest
from block_files import CELL, REPEATS, SERIES, append, assert_tallies_are_true, contents, end, write_block
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.store import Ledger


@pytest.mark.parametrize(
    "line",
    [
        b"\x00\xff garbled",
        b'{"event": "end", "seed": 5, "outc',
        b'{"event": "end", "seed": 5, "trial": 5, "outcome": "FINE"}',
        b'{"event": "end", "seed": "5", "trial": 5, "outcome": "PASSED"}',
        b'{"event": "end", "seed": 99999999999999999999, "trial": 5, "outcome": "PASSED"}',
        b'{"event": "end", "seed": 5, "trial": "x", "outcome": "PASSED"}',
        b'{"event": "end", "seed": 5, "trial": 5, "outcome": "PASSED", "time": NaN}',
        b"[]",
        b"7",
        b"[" * 100_000,
    ],
)
def test_a_garbled_line_is_counted_and_changes_no_number(home, ledger, line):
    folder = write_block(home, "b1", [CELL, end(0, "PASSED")])
    with (folder / "records.jsonl").open("ab") as file:
        file.write(line + b"\n")
    append(folder, end(1, "FAILED"))
    assert ledger.ingest(folder).garbled == 1
    assert (ledger.tally(SERIES).failed, ledger.tally(SERIES).n) == (1, 2)
    assert ledger.garbled_lines() == {"b1": 1}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    home = tmp_path_factory.mktemp("shared")
    with Ledger.open(home / "ledger.sqlite") as ledger:
        yield home, ledger, itertools.count(1000)


FIELDS = ["event", "seed", "trial", "outcome", "time", "duration", "message", "gpu", "path", "signature"]
FIELDS += ["comparisons", "failed_again", "imported"]
WORDS = ["end", "start", "cell", "inputs", "missing", "PASSED", "FAILED"]
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(WORDS)
VALUES = PLAIN | st.lists(PLAIN | st.dictionaries(st.text(), PLAIN)) | st.dictionaries(st.text(), PLAIN)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), VALUES)))
def test_no_line_breaks_the_ledger(shared, events):
    home, ledger, numbers = shared
    block, seed = f"b{next(numbers)}", next(numbers)
    asked = [*range(100), seed]
    ledger.ingest(write_block(home, block, [CELL, *events, end(seed, "PASSED", at=-1.0)], seeds=asked))
    assert seed in {trial.seed for trial in ledger.trials(repeats=True) if trial.block == block}
    assert_tallies_are_true(ledger)


def test_a_file_cut_at_any_byte_is_read_up_to_the_cut(home, tmp_path):
    events = [
        CELL,
        end(0, "PASSED"),
        {"event": "start", "trial": 1, "seed": 1, "time": 5.0},
        end(1, "FAILED"),
    ]
    whole = write_block(home, "b1", events).joinpath("records.jsonl").read_bytes()
    records = home / "blocks" / "b1" / "records.jsonl"
    with Ledger.open(tmp_path / "growing" / "ledger.sqlite") as growing:
        for cut in range(0, len(whole) + 1, 3):
            records.write_bytes(whole[:cut])
            growing.ingest(records.parent)
            lines = whole[:cut].count(b"\n")
            assert growing.tally(SERIES).n == (lines >= 2) + (lines >= 4)
        records.write_bytes(whole)
        growing.ingest(records.parent)
        with Ledger.open(home / "ledger.sqlite") as at_once:
            assert contents(growing) == contents(at_once)
        assert growing.garbled_lines() == {}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"cell": "c"}', '{"cell": 1, "subject": "", "test": "", "mode": "x"}']
)
def test_a_block_without_a_readable_request_is_named(home, ledger, text):
    folder = write_block(home, "b1", [CELL, end(0, "PASSED")])
    (folder / "request.json").write_text(text)
    assert "request.json is no request" in ledger.ingest(folder).problem
    assert ledger.tallies() == []


def test_an_empty_folder_is_no_mistake(home, ledger):
    (home / "blocks" / "b1").mkdir(parents=True)
    assert "is not there" in ledger.ingest(home / "blocks" / "b1").problem
    assert ledger.ingest(write_block(home, "b2", [])).trials == 0


def forged(kind, seed, trial=0, **fields):
    return {"event": kind, "seed": seed, "trial": trial, **fields}


@pytest.mark.parametrize("asked", [range(2), [1, 0], [0, 1, 7000]], ids=["range", "list", "list with a gap"])
def test_a_trial_that_was_not_asked_for_counts_nowhere(home, ledger, asked):
    """Neither its end, nor inputs, nor that it runs; anew from the evidence, too."""
    lies = [
        end(5, "FAILED"),
        end(1, "PASSED", seed=-1),
        forged("start", 6),
        forged("inputs", 7, path="inputs/seed7.pt", sha256="0" * 64),
    ]
    folder = write_block(home, "b1", [CELL, end(0, "PASSED"), *lies, end(1, "FAILED")], seeds=asked)
    came = ledger.ingest(folder)
    assert (came.trials, came.garbled, came.running) == (2, len(lies), None)
    assert (ledger.tally(SERIES).failed, ledger.tally(SERIES).n) == (1, 2)
    assert ledger.kept_inputs(SERIES) == []
    with Ledger.rebuild(home / "anew.sqlite", home / "blocks") as anew:
        assert contents(anew) == contents(ledger)
        assert anew.garbled_lines() == {"b1": len(lies)}


def test_a_repetition_that_was_not_asked_for_counts_nowhere(home, ledger):
    """The same seed again and again: its trials are told apart by their numbers alone."""
    ends = [end(number, "FAILED", seed=7) for number in (9, 10, 11, 12, 13, -1)]
    asked = {"seeds": [7, 7, 7], "first_trial": 10, "mode": "repeat"}
    assert ledger.ingest(write_block(home, "b1", [CELL, *ends], **asked)).garbled == 3
    assert ledger.tally(REPEATS).n == 3
