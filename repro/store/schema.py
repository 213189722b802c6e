"""The ledger's tables, and the one place where SQLite's errors become the kit's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from repro.errors import NotReadyError

VERSION = 1
BUSY_SECONDS = 30.0
_HEADER = 100
"""Bytes of a database's header: https://sqlite.org/fileformat2.html#the_database_header."""

_TABLES = """
CREATE TABLE series (
  id INTEGER PRIMARY KEY,
  cell TEXT NOT NULL, revision TEXT NOT NULL, test TEXT NOT NULL, mode TEXT NOT NULL, gpu TEXT NOT NULL,
  UNIQUE (cell, revision, test, mode, gpu));
CREATE TABLE environments (
  id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, cell TEXT NOT NULL, facts TEXT NOT NULL);
CREATE TABLE signatures (id INTEGER PRIMARY KEY, key TEXT NOT NULL, json TEXT NOT NULL, UNIQUE (key, json));
CREATE TABLE blocks (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  digest TEXT NOT NULL,              -- of what the block is about: ids of two people's blocks may coincide
  cell TEXT NOT NULL, revision TEXT NOT NULL, test TEXT NOT NULL, mode TEXT NOT NULL,
  gpu TEXT NOT NULL,
  environment INTEGER REFERENCES environments,
  offset INTEGER NOT NULL DEFAULT 0, -- bytes of records.jsonl that are in here
  lines INTEGER NOT NULL DEFAULT 0,
  garbled INTEGER NOT NULL DEFAULT 0,
  ended INTEGER NOT NULL DEFAULT 0,
  next_trial INTEGER NOT NULL DEFAULT 0,
  time REAL NOT NULL DEFAULT 0,      -- of the last line that tells it
  running TEXT,                      -- [seed, repetition, time] of the trial that has no end yet
  UNIQUE (name, digest));
CREATE TABLE trials (
  block INTEGER NOT NULL REFERENCES blocks,
  line INTEGER NOT NULL,
  series INTEGER NOT NULL REFERENCES series,
  seed INTEGER NOT NULL,
  repetition INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  counted INTEGER NOT NULL DEFAULT 0, -- set by the trigger: 1 for the one trial of its key
  time REAL NOT NULL,
  seconds REAL,
  signature INTEGER REFERENCES signatures,
  message TEXT,
  comparisons TEXT,
  PRIMARY KEY (block, line)) WITHOUT ROWID;
CREATE INDEX trials_by_key ON trials (series, seed, repetition);
CREATE INDEX trials_by_signature ON trials (signature) WHERE signature IS NOT NULL;
CREATE TABLE tallies (
  series INTEGER NOT NULL REFERENCES series, outcome TEXT NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY (series, outcome)) WITHOUT ROWID;
CREATE TABLE inputs (
  block INTEGER NOT NULL REFERENCES blocks, line INTEGER NOT NULL,
  series INTEGER NOT NULL REFERENCES series, seed INTEGER NOT NULL, repetition INTEGER NOT NULL,
  path TEXT NOT NULL, sha256 TEXT NOT NULL, failed_again INTEGER, same_elements INTEGER,
  PRIMARY KEY (block, line)) WITHOUT ROWID;
CREATE TABLE builds (
  cell TEXT NOT NULL, digest TEXT NOT NULL, ok INTEGER NOT NULL, seconds REAL NOT NULL,
  log_tail TEXT NOT NULL, time REAL NOT NULL,
  PRIMARY KEY (cell, digest, time)) WITHOUT ROWID;
"""

# What came later, for ledgers that were made before it. Few trials do not pass: they are found without
# looking at those that do. A query uses an index with a condition only where it has the same condition; with
# the columns of that condition in the index, too, no row of the table is looked at.
_INDEXES = """
CREATE INDEX IF NOT EXISTS trials_not_passed_by_seed ON trials (series, outcome, seed, counted)
  WHERE counted AND outcome <> 'PASSED';
"""

# Which of two trials with one key counts must not depend on the order in which they came into the
# ledger: a rebuild and a merge see them in another one. So the earliest by its own clock counts, and
# an outcome that says nothing of the test gives way to any other.
_TRIGGERS = """
CREATE TRIGGER settle AFTER INSERT ON trials BEGIN
  UPDATE trials SET counted = 0
   WHERE series = NEW.series AND seed = NEW.seed AND repetition = NEW.repetition AND counted = 1
     AND (outcome IN ('INFRA', 'BUILD_FAILED', 'TEST_MISSING'), time,
          (SELECT name FROM blocks WHERE id = block), line)
       > (NEW.outcome IN ('INFRA', 'BUILD_FAILED', 'TEST_MISSING'), NEW.time,
          (SELECT name FROM blocks WHERE id = NEW.block), NEW.line);
  UPDATE trials SET counted = 1
   WHERE block = NEW.block AND line = NEW.line AND NOT EXISTS (
     SELECT 1 FROM trials WHERE series = NEW.series AND seed = NEW.seed
        AND repetition = NEW.repetition AND counted = 1);
END;
CREATE TRIGGER tally_in AFTER UPDATE OF counted ON trials WHEN NEW.counted > OLD.counted BEGIN
  INSERT INTO tallies VALUES (NEW.series, NEW.outcome, 1)
    ON CONFLICT (series, outcome) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tally_out AFTER UPDATE OF counted ON trials WHEN NEW.counted < OLD.counted BEGIN
  UPDATE tallies SET n = n - 1 WHERE series = OLD.series AND outcome = OLD.outcome;
END;
"""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about the ledger at `path` into errors that name a way out.

    Raises:
        NotReadyError: the disk is full, another process holds the ledger for too long, or the file is
            damaged or no ledger.
    """
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a fault of the kit's, and no reason to distrust the file
    except UnicodeDecodeError as error:  # SQLite's own message quotes the damaged bytes
        raise _damaged(path, "it holds text that is none") from error
    except sqlite3.Error as error:
        raise _explain(path, error) from error


def _explain(path: Path, error: sqlite3.Error) -> NotReadyError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return NotReadyError(
            f"Could not write to the ledger {path}: {error}.",
            why="The disk is full, or failing. What was recorded before is intact.",
            next_step="Free some space and give the same command again: it goes on where it stopped.",
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return NotReadyError(
            f"The ledger {path} stayed locked for {BUSY_SECONDS:.0f} seconds.",
            why="Another process is writing to it and does not come to an end.",
            next_step=f"See which one with `fuser {path}`, then give the same command again.",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return NotReadyError(
            f"The ledger {path} cannot be opened for writing: {error}.",
            why="Its folder is missing, is read-only, or belongs to another user.",
            next_step=f"Look at `ls -ld {path.parent} {path}`, or take a copy of the folder: --state DIR.",
        )
    return _damaged(path, str(error))


def _damaged(path: Path, why: str) -> NotReadyError:
    return NotReadyError(
        f"The ledger {path} is damaged or is no ledger: {why}.",
        why="Something other than the kit wrote to it, or the disk lost a part of it.",
        next_step=f"Delete it with `rm {path}*`: the next command rebuilds it from the block files in"
        f" {path.parent / 'blocks'}.",
    )


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """Turn values that no kit writes, found in the ledger at `path`, into the error for a damaged one.

    Raises:
        NotReadyError: with the way out.
    """
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(path, f"it holds what no kit writes ({str(error)[:80]})") from error


def tables() -> dict[str, set[str]]:
    """The columns of each table of a ledger, by its name."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(_TABLES)
        names = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {name: columns(db, name) for (name,) in names}


def columns(db: sqlite3.Connection, table: str) -> set[str]:
    """The names of a table's columns."""
    return {name for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def connect(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Open the database and bring it to this version; and whether it is a new one.

    Raises:
        NotReadyError: it cannot be opened or written, is damaged, no ledger, or made by a newer kit.
    """
    with explained(path):
        with suppress(OSError):  # SQLite says in a moment that it cannot open the file
            path.parent.mkdir(parents=True, exist_ok=True)
        _check_length(path)
        # Threads share the connection; the ledger's lock lets one in at a time.
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            check_version(db, path)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA foreign_keys = ON")
            return db, _create(db)
        except BaseException:
            db.close()
            raise


def _check_length(path: Path) -> None:
    """Refuse a file that lost its end: SQLite itself says so only once it needs a page that is gone.

    Raises:
        NotReadyError: it is shorter than its own header says, and no log is there to make up for that.
    """
    logs = (path.with_name(path.name + suffix) for suffix in ("-wal", "-journal"))
    if not path.is_file() or any(log.exists() and log.stat().st_size for log in logs):
        return
    with path.open("rb") as file:
        header = file.read(_HEADER)
    size, pages = int.from_bytes(header[16:18], "big"), int.from_bytes(header[28:32], "big")
    whole = pages * (2**16 if size == 1 else size)
    cut = header.startswith(b"SQLite format 3") and path.stat().st_size < whole
    if cut or 0 < len(header) < _HEADER:
        raise _damaged(path, "its end is missing")


def check_version(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that a newer kit made, or that is something else.

    Raises:
        NotReadyError: when it is one of these.
    """
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise NotReadyError(
            f"The ledger {path} has version {version}; this kit knows versions up to {VERSION}.",
            why="A newer kit wrote it.",
            next_step="Update the kit, or name another folder for this one's records.",
        )
    if version == 0 and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise NotReadyError(
            f"{path} is a database, but no ledger of this kit.",
            next_step="Name another file, or move this one away.",
        )


def _create(db: sqlite3.Connection) -> bool:
    db.execute("BEGIN IMMEDIATE")  # of two processes that find no tables, one makes them
    try:
        new: bool = db.execute("PRAGMA user_version").fetchone()[0] == 0
        if new:
            for statement in _statements(_TABLES + _TRIGGERS):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")
        for statement in _statements(_INDEXES):
            db.execute(statement)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk makes SQLite roll back by itself
            db.execute("ROLLBACK")
        raise
    return new


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
