"""What a user can meet: newer, damaged and foreign ledgers, a full disk."""

from __future__ import annotations

import random
import sqlite3

import pytest
from block_files import CELL, SERIES, contents, end, random_blocks, write_block

from repro.errors import NotReadyError, ReproError, UsageError
from repro.store import Ledger


def test_a_newer_ledger_is_refused(home):
    Ledger.open(home / "ledger.sqlite").close()
    db = sqlite3.connect(home / "ledger.sqlite")
    db.execute("PRAGMA user_version = 9")
    db.close()
    with pytest.raises(ReproError, match="has version 9; this kit knows versions up to 1"):
        Ledger.open(home / "ledger.sqlite")


def test_another_database_is_refused(home):
    home.mkdir()
    db = sqlite3.connect(home / "ledger.sqlite")
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    with pytest.raises(ReproError, match="no ledger of this kit"):
        Ledger.open(home / "ledger.sqlite")


@pytest.mark.parametrize("where", [0, 100, 5000])
def test_a_damaged_ledger_names_the_way_out(home, where):
    path = home / "ledger.sqlite"
    random_blocks(home, random.Random(5))
    with Ledger.open(path) as ledger:
        good = contents(ledger)
    data = bytearray(path.read_bytes())
    data[where:] = b"\xa5" * (len(data) - where)
    path.write_bytes(data)

    def use():
        with Ledger.open(path) as ledger:
            contents(ledger)

    with pytest.raises(ReproError, match="damaged or is no ledger") as caught:
        use()
    assert f"rm {path}*" in caught.value.next_step
    assert "rebuilds it from the block files" in caught.value.next_step
    with Ledger.rebuild(path) as again:
        assert contents(again) == good


def test_a_full_disk_is_said_and_harms_nothing(home, ledger):
    ledger.ingest(write_block(home, "b1", [CELL, end(0, "PASSED")]))
    pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
    ledger._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    big = write_block(
        home, "b2", [CELL, *(end(i, "FAILED", message="x" * 500) for i in range(200))], seeds=range(200)
    )
    with pytest.raises(NotReadyError, match="full") as caught:
        ledger.ingest(big)
    assert "goes on where it stopped" in caught.value.next_step
    assert ledger.tally(SERIES).n == 1
    ledger._db.execute("PRAGMA max_page_count = 1000000")
    assert ledger.ingest(big).trials == 200
    assert ledger._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("pages", range(1, 12))
def test_a_disk_that_is_full_while_the_ledger_is_made(home, monkeypatch, pages):
    """SQLite gives the transaction up by itself then; to have the user delete the ledger would be wrong."""
    connect = sqlite3.connect

    def small(*args, **options):
        db = connect(*args, **options)
        db.execute(f"PRAGMA max_page_count = {pages}")
        return db

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", small)
        with pytest.raises(NotReadyError, match="full"):
            Ledger.open(home / "ledger.sqlite")
    with Ledger.open(home / "ledger.sqlite") as ledger:
        assert ledger.tallies() == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotReadyError, match="cannot be opened"):
        Ledger.open(tmp_path / "file" / "ledger.sqlite")


def test_merging_what_is_not_there(ledger, tmp_path):
    with pytest.raises(UsageError, match="There is no ledger"):
        ledger.merge(tmp_path / "none.sqlite")
    (tmp_path / "text").write_text("hello " * 1000)
    with pytest.raises(ReproError, match="no ledger"):
        ledger.merge(tmp_path / "text")
    assert list((ledger.path.parent / "merged").iterdir()) == []


def test_a_block_of_a_newer_kit_is_refused(home, ledger):
    folder = write_block(home, "b1", [{**CELL, "schema": 99}, end(0, "PASSED")])
    with pytest.raises(ReproError, match="version 99"):
        ledger.ingest(folder)
    assert ledger.tallies() == []
