"""The ledger as a function of its evidence, in whatever order it comes."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import pytest
from block_files import (
    CELL,
    SERIES,
    append,
    assert_tallies_are_true,
    contents,
    end,
    random_blocks,
    write_block,
)

from repro.errors import UsageError
from repro.store import Ledger


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_blocks_does_not_matter(home, tmp_path, seed):
    rng = random.Random(seed)
    random_blocks(home, rng)
    folders = sorted((home / "blocks").iterdir())
    with Ledger.open(home / "ledger.sqlite") as rebuilt, Ledger.open(tmp_path / "x.sqlite") as shuffled:
        rng.shuffle(folders)
        for folder in folders:
            shuffled.ingest(folder)
        assert rebuilt.tallies()
        assert contents(rebuilt) == contents(shuffled)
        assert_tallies_are_true(rebuilt)
        assert_tallies_are_true(shuffled)


def test_deleting_the_ledger_loses_nothing(home, tmp_path):
    path = home / "ledger.sqlite"
    random_blocks(home, random.Random(1))
    with Ledger.open(tmp_path / "theirs" / "ledger.sqlite") as theirs:
        theirs.ingest(write_block(tmp_path / "theirs", "t1", [CELL, end(90, "FAILED")]))
    with Ledger.open(path) as ledger:
        ledger.record_build("torch2.9", "d", ok=True, seconds=3.0)
        ledger.merge(tmp_path / "theirs" / "ledger.sqlite")
        before = contents(ledger), ledger.builds()
    for file in home.glob("ledger.sqlite*"):
        file.unlink()
    with Ledger.open(path) as again:
        assert (contents(again), again.builds()) == before
    path.write_bytes(b"not a database, " * 500)
    with Ledger.rebuild(path) as again:
        assert (contents(again), again.builds()) == before
    assert sorted(file.name for file in home.iterdir()) == [
        "blocks",
        "builds.jsonl",
        "ledger.sqlite",
        "merged",
    ]


def test_ledgers_that_hold_builds_are_merged(home, tmp_path):
    """SQLite 3.40's own check finds NULLs in the table of builds where there are none."""
    with Ledger.open(tmp_path / "theirs.sqlite") as theirs:
        for number in range(200):
            theirs.record_build("torch2.9", f"d{number}", ok=True, seconds=3.0)
    with Ledger.open(home / "ledger.sqlite") as mine:
        mine.merge(tmp_path / "theirs.sqlite")
        assert len(mine.builds()) == 200


def test_a_ledger_with_a_build_that_is_none_is_not_merged(home, tmp_path):
    Ledger.open(tmp_path / "theirs.sqlite").close()
    db = sqlite3.connect(tmp_path / "theirs.sqlite")
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = replace(sql, 'ok INTEGER NOT NULL', 'ok INTEGER')")
    db.commit()
    db.close()
    db = sqlite3.connect(tmp_path / "theirs.sqlite")
    db.execute("INSERT INTO builds VALUES ('c', 'd', NULL, 1.0, '', 1.0)")
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = replace(sql, 'ok INTEGER', 'ok INTEGER NOT NULL')")
    db.commit()
    db.close()
    with Ledger.open(home / "ledger.sqlite") as mine, pytest.raises(UsageError, match=r"NULL .*builds\.ok"):
        mine.merge(tmp_path / "theirs.sqlite")


def test_merging_counts_nothing_twice(home, tmp_path):
    mine, theirs = home, tmp_path / "theirs"
    random_blocks(mine, random.Random(2))
    random_blocks(theirs, random.Random(3))
    for number in range(12):  # block ids are random in life
        (theirs / "blocks" / f"b{number:02}").rename(theirs / "blocks" / f"t{number:02}")
    with Ledger.open(mine / "ledger.sqlite") as a, Ledger.open(theirs / "ledger.sqlite") as b:
        assert a.merge(theirs / "ledger.sqlite") == 360
        assert a.merge(theirs / "ledger.sqlite") == 0
        b.merge(mine / "ledger.sqlite")
        assert contents(a) == contents(b)
        assert_tallies_are_true(a)


def test_a_merged_block_may_turn_up_as_a_folder_later(home, tmp_path):
    theirs = tmp_path / "theirs"
    folder = write_block(theirs, "b1", [CELL, end(0, "PASSED"), end(1, "FAILED")])
    with folder.joinpath("records.jsonl").open("a") as file:
        file.write("garbled\n")
    Ledger.open(theirs / "ledger.sqlite").close()
    with Ledger.open(home / "ledger.sqlite") as ledger:
        ledger.merge(theirs / "ledger.sqlite")
        append(folder, end(2, "FAILED"))
        assert ledger.ingest(folder).trials == 1
        assert ledger.tally(SERIES).n == 3
        assert ledger.garbled_lines() == {"b1": 1}


def test_foreign_keys_hold(home, ledger):
    random_blocks(home, random.Random(4))
    ledger.catch_up()
    with closing(sqlite3.connect(ledger.path)) as db:
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
