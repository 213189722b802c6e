"""Whatever bytes a parser is given: an error with the next command, or a line left out; never a traceback."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from pathlib import Path

import fuzz_contracts
import pytest
from block_files import assert_tallies_are_true, contents
from fuzz_contracts import CONTRACTS, REQUEST
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.errors import ExitCode, NotReadyError, ReproError, UsageError
from repro.store import Ledger
from repro.store.sound import read_sound_events, unsound
from repro.trial.reader import read_events

REAL = Path(__file__).parent / "real_block"
LINES = (REAL / "records.jsonl").read_bytes().splitlines(keepends=True)
SHORT = [*LINES[:7], LINES[-1]]
"""A trial that passed, one that failed and was run again, and the end."""
SLIPS = 40
NAMES = pytest.mark.parametrize("name", sorted(CONTRACTS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@NAMES
def test_good_inputs_with_slips(folder, name):
    examples, rng = fuzz_contracts.examples(name, folder), random.Random(name)
    for _ in range(SLIPS):
        CONTRACTS[name](fuzz_contracts.mutated(rng.choice(examples), rng), folder)


@NAMES
@settings(max_examples=25, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes(folder, name, data):
    CONTRACTS[name](data, folder)


# Every field of a real block's events, in turn, as what no trial writes ---------------------------------

ODD = [
    None,
    True,
    -1,
    2**70,
    0.5,
    float("nan"),
    float("inf"),
    "",
    "x\x1b[2J",
    [],
    [[]],
    {},
    {"a": {}},
    [None],
]


def fields(value, path=()):
    """The places of a record, outermost first; of a list its first item."""
    yield path
    if isinstance(value, dict):
        for name in value:
            yield from fields(value[name], (*path, name))
    elif isinstance(value, list) and value:
        yield from fields(value[0], (*path, 0))


def changed(value, path, new):
    copy = json.loads(json.dumps(value))
    at = copy
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = new
    return copy


def kinds():
    """One event of each kind and outcome."""
    found = {}
    for line in LINES:
        event = json.loads(line)
        found.setdefault((event["event"], event.get("outcome")), event)
    return sorted(found.values(), key=str)


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_each_field_of_a_real_block_with_an_odd_value(folder, odd):
    lines = [
        json.dumps(changed(event, path, odd)).encode() + b"\n"
        for event in kinds()
        for path in fields(event)
        if path
    ]
    CONTRACTS["block"](b"".join([*LINES[:3], *lines]), folder)
    CONTRACTS["records"](b"".join([*LINES[:3], *lines]), folder)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_fields_of_a_real_block_with_any_value(folder, data):
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
    values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3))  # fmt: skip  # noqa: E501
    event = data.draw(st.sampled_from(kinds()))
    path = data.draw(st.sampled_from([path for path in fields(event) if path]))
    line = json.dumps(changed(event, path, data.draw(values))).encode() + b"\n"
    CONTRACTS["block"](b"".join([*LINES[:3], line]), folder)
    CONTRACTS["records"](b"".join([*LINES[:3], line]), folder)


def test_real_events_are_sound():
    events = list(read_events(REAL / "records.jsonl"))
    assert len(events) == len(LINES)
    assert [unsound(event) for event in events] == [""] * len(events)


# A real block cut at every byte --------------------------------------------------------------------------


def test_a_real_block_cut_at_any_byte_is_read_up_to_the_cut(folder):
    data, path = b"".join(SHORT), folder / "cut.jsonl"
    events = [json.loads(line) for line in SHORT]
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        whole = data[:cut].count(b"\n")
        assert list(read_sound_events(path)) in (events[:whole], events[: whole + 1])


def test_a_real_block_that_grows_byte_by_byte_is_taken_in_line_by_line(folder):
    data = b"".join(LINES)
    home = folder / "grows"
    records = home / "blocks" / "b1" / "records.jsonl"
    records.parent.mkdir(parents=True)
    shutil.copy(REAL / "request.json", records.parent)
    ends = [line.startswith(b'{"event": "end"') for line in LINES]
    with Ledger.open(home / "ledger.sqlite") as growing, records.open("ab", buffering=0) as file:
        for at in range(len(data)):
            file.write(data[at : at + 1])
            if data[at : at + 1] in (b"\n", b"}") or at % 50 == 0:  # most bytes change nothing
                growing.ingest(records.parent)
                done = sum(ends[: data[: at + 1].count(b"\n")])
                assert sum(tally.n for tally in growing.tallies()) == done
        assert growing.garbled_lines() == {}
        with Ledger.open(folder / "whole" / "ledger.sqlite") as at_once:
            at_once.ingest(records.parent)
            assert contents(growing) == contents(at_once)


# Ledgers -------------------------------------------------------------------------------------------------


@pytest.fixture
def good(tmp_path):
    """The bytes of a ledger, and a folder without any."""
    return fuzz_contracts.examples("ledger", tmp_path)[0]


def complaint(path):
    with pytest.raises(ReproError) as caught, Ledger.open(path) as ledger:
        contents(ledger)
    assert caught.value.next_step
    assert caught.value.exit_code is not ExitCode.BUG
    return caught.value


def test_a_ledger_cut_anywhere_is_refused(tmp_path, good):
    path = tmp_path / "ledger.sqlite"
    for cut in range(1, len(good), 1009):
        path.write_bytes(good[:cut])
        assert f"rm {path}*" in complaint(path).next_step


def test_a_ledger_without_a_byte_is_a_new_one(tmp_path, good):
    (tmp_path / "ledger.sqlite").write_bytes(b"")
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.tallies() == []


def test_a_ledger_of_another_schema_is_refused(tmp_path, good):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(good)
    change(path, "DROP TABLE tallies", "CREATE TABLE tallies (other)")
    complaint(path)


def test_a_ledger_that_is_read_only_says_so(tmp_path, good, monkeypatch):
    """A folder on a read-only file system, as SQLite tells of it: root may write to a read-only file."""
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(good)
    connect = sqlite3.connect

    def read_only(database, **options):
        return connect(f"file:{database}?mode=ro&immutable=1", uri=True, **options)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    with (
        pytest.raises(NotReadyError, match="cannot be opened for writing") as caught,
        Ledger.open(path) as opened,
    ):
        opened.record_build("c", "d", ok=True, seconds=1.0)
    assert f"ls -ld {tmp_path} {path}" in caught.value.next_step


def change(path, *statements):
    db = sqlite3.connect(path)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


FORGED = {
    "an outcome": "UPDATE trials SET outcome = 'FINE'",
    "a mode": "UPDATE series SET mode = 'luck'",
    "a seed": "UPDATE trials SET seed = 'seven' WHERE line = 3",
    "a time": "UPDATE trials SET time = 'noon'",
    "comparisons": "UPDATE trials SET comparisons = '[7]'",
    "no JSON": "UPDATE trials SET comparisons = '[{'",
    "a signature": """UPDATE signatures SET json = '{"line": []}'""",
    "facts": "UPDATE environments SET facts = '[]'",
    "a path upwards": "UPDATE inputs SET path = '../../../secret'",
    "an absolute path": "UPDATE inputs SET path = '/etc/passwd'",
    "a digest with a path": "UPDATE inputs SET sha256 = '../../secret'",
    "a block's name": "UPDATE blocks SET name = '../elsewhere'",
    "another table": "ALTER TABLE trials RENAME COLUMN message TO said",
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_ledger_is_not_merged(tmp_path, good, what):
    other, mine = tmp_path / "other.sqlite", tmp_path / "mine" / "ledger.sqlite"
    other.write_bytes(good)
    change(
        other,
        "PRAGMA foreign_keys = OFF",
        *(f"DROP TRIGGER {name}" for name in ("settle", "tally_in", "tally_out")),
    )
    change(other, FORGED[what])
    with Ledger.open(mine) as ledger, pytest.raises(UsageError, match="cannot be merged") as caught:
        ledger.merge(other)
    assert "Nothing of it was taken in" in caught.value.why
    with Ledger.open(mine) as ledger:
        assert ledger.tallies() == []
    assert list((mine.parent / "merged").iterdir()) == []


def test_a_view_in_the_place_of_a_table_is_not_asked(tmp_path, good):
    """It could go on for ever."""
    other = tmp_path / "other.sqlite"
    other.write_bytes(good)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i, 1, 1, i, i FROM n"
    change(
        other,
        "DROP TABLE builds",
        f"CREATE VIEW builds (cell, digest, ok, seconds, log_tail, time) AS {endless}",
    )
    with (
        Ledger.open(tmp_path / "mine" / "ledger.sqlite") as ledger,
        pytest.raises(UsageError, match="table builds"),
    ):
        ledger.merge(other)


def test_a_good_ledger_is_merged(tmp_path, good):
    other = tmp_path / "other.sqlite"
    other.write_bytes(good)
    with Ledger.open(tmp_path / "mine" / "ledger.sqlite") as ledger:
        assert ledger.merge(other) == 6
        assert_tallies_are_true(ledger)
        assert REQUEST["cell"] in {tally.series.cell for tally in ledger.tallies()}
