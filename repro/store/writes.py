"""The statements that fill the ledger; each runs inside its caller's transaction."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from functools import cache
from typing import Any

from repro.store.blocks import Request
from repro.store.events import Batch, Cursor
from repro.store.model import Build, Running


def block_cursor(db: sqlite3.Connection, name: str, request: Request) -> tuple[int, Cursor]:
    """The block's row, made unless it is there, and how far its file was read."""
    db.execute(
        "INSERT INTO blocks (name, digest, cell, revision, test, mode, gpu, next_trial)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            name,
            request.digest,
            request.cell,
            request.revision,
            request.test,
            request.mode.value,
            request.gpu,
            request.first_trial,
        ),
    )
    row = db.execute(
        "SELECT id, offset, lines, garbled, gpu, running, next_trial, time, ended FROM blocks"
        " WHERE name = ? AND digest = ?",
        (name, request.digest),
    ).fetchone()
    block, offset, lines, garbled, gpu, running, next_trial, time, ended = row
    return block, Cursor(
        offset=offset,
        lines=lines,
        garbled=garbled if offset else 0,  # a merged block's count is another reading of the same lines
        gpu=gpu,
        running=running_from(running),
        next_trial=next_trial,
        time=time,
        ended=bool(ended),
    )


def save_cursor(db: sqlite3.Connection, block: int, request: Request, cursor: Cursor) -> None:
    """Remember how far the block file was read, in the transaction that took its lines in."""
    environment = None if cursor.facts is None else _environment(db, request.cell, cursor.facts)
    running = cursor.running and json.dumps(
        [cursor.running.seed, cursor.running.repetition, cursor.running.since]
    )
    db.execute(
        "UPDATE blocks SET offset = ?, lines = ?, garbled = ?, gpu = ?, running = ?, next_trial = ?,"
        " time = ?, ended = ?, environment = coalesce(?, environment) WHERE id = ?",
        (
            cursor.offset,
            cursor.lines,
            cursor.garbled,
            cursor.gpu,
            running,
            cursor.next_trial,
            cursor.time,
            cursor.ended,
            environment,
            block,
        ),
    )


def running_from(text: str | None) -> Running | None:
    """The open trial of a block row."""
    if text is None:
        return None
    seed, repetition, since = json.loads(text)
    return Running(seed=seed, repetition=repetition, since=since)


def add_batch(db: sqlite3.Connection, block: int, request: Request, batch: Batch) -> int:
    """Add what a stretch of a block file holds; how many trials were new."""
    series = cache(lambda gpu: _series(db, request, gpu))
    signature = cache(lambda key_and_json: _signature(db, key_and_json))
    trials = [
        (
            *(block, end.line, series(end.gpu), end.seed, end.repetition, end.outcome.value, end.time),
            *(end.seconds, signature(end.signature), end.message or None, end.comparisons),
        )
        for end in batch.ends
    ]
    inputs = [
        (
            *(block, kept.line, series(kept.gpu), kept.seed, kept.repetition),
            *(kept.path, kept.sha256, kept.failed_again, kept.same_elements),
        )
        for kept in batch.inputs
    ]
    new = db.executemany(
        "INSERT INTO trials (block, line, series, seed, repetition, outcome, time, seconds, signature,"
        " message, comparisons) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        trials,
    ).rowcount
    db.executemany("INSERT INTO inputs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", inputs)
    return max(new, 0)  # -1 where there was nothing to insert


def add_build(db: sqlite3.Connection, build: Build) -> None:
    """Add a build unless it is there."""
    db.execute(
        "INSERT INTO builds (cell, digest, ok, seconds, log_tail, time) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (build.cell, build.digest, build.ok, build.seconds, build.log_tail, build.time),
    )


def merge_attached(db: sqlite3.Connection) -> int:
    """Take in the database attached as `other`; how many trials were new.

    Rows are recognised by what they say, never by their numbers, which differ between ledgers. A block that
    comes this way has read nothing of a file here, so its offset is 0.
    """
    for statement in _MERGE:
        db.execute(statement)
    return max(db.execute(_MERGE_TRIALS).rowcount, 0)


def _series(db: sqlite3.Connection, request: Request, gpu: str) -> int:
    about = (request.cell, request.revision, request.test, request.mode.value, gpu)
    db.execute(
        "INSERT INTO series (cell, revision, test, mode, gpu) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        about,
    )
    return _id(db, "series WHERE cell = ? AND revision = ? AND test = ? AND mode = ? AND gpu = ?", *about)


def _signature(db: sqlite3.Connection, key_and_json: tuple[str, str] | None) -> int | None:
    if key_and_json is None:
        return None
    db.execute("INSERT INTO signatures (key, json) VALUES (?, ?) ON CONFLICT DO NOTHING", key_and_json)
    return _id(db, "signatures WHERE key = ? AND json = ?", *key_and_json)


def _environment(db: sqlite3.Connection, cell: str, facts: dict[str, Any]) -> int:
    text = json.dumps(facts, sort_keys=True)
    hash_ = hashlib.sha256(f"{cell}\n{text}".encode()).hexdigest()[:16]
    db.execute(
        "INSERT INTO environments (hash, cell, facts) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (hash_, cell, text),
    )
    return _id(db, "environments WHERE hash = ?", hash_)


def _id(db: sqlite3.Connection, where: str, *values: str) -> int:
    number: int = db.execute(f"SELECT id FROM {where}", values).fetchone()[0]
    return number


_SAME_BLOCK = """JOIN other.blocks ob ON ob.id = theirs.block
  JOIN main.blocks b ON b.name = ob.name AND b.digest = ob.digest"""
_SAME_SERIES = """JOIN other.series os ON os.id = theirs.series
  JOIN main.series s ON s.cell = os.cell AND s.revision = os.revision AND s.test = os.test
   AND s.mode = os.mode AND s.gpu = os.gpu"""

_MERGE = (
    """INSERT INTO series (cell, revision, test, mode, gpu)
       SELECT cell, revision, test, mode, gpu FROM other.series WHERE true ON CONFLICT DO NOTHING""",
    """INSERT INTO environments (hash, cell, facts)
       SELECT hash, cell, facts FROM other.environments WHERE true ON CONFLICT DO NOTHING""",
    """INSERT INTO signatures (key, json)
       SELECT key, json FROM other.signatures WHERE true ON CONFLICT DO NOTHING""",
    """INSERT INTO blocks (name, digest, cell, revision, test, mode, gpu, environment, garbled, ended)
       SELECT theirs.name, theirs.digest, theirs.cell, theirs.revision, theirs.test, theirs.mode,
              theirs.gpu, e.id, theirs.garbled, theirs.ended
         FROM other.blocks theirs
         LEFT JOIN other.environments oe ON oe.id = theirs.environment
         LEFT JOIN main.environments e ON e.hash = oe.hash
        WHERE true ON CONFLICT DO NOTHING""",
    f"""INSERT INTO inputs
       SELECT b.id, theirs.line, s.id, theirs.seed, theirs.repetition, theirs.path, theirs.sha256,
              theirs.failed_again, theirs.same_elements
         FROM other.inputs theirs {_SAME_BLOCK} {_SAME_SERIES}
        WHERE true ON CONFLICT DO NOTHING""",
    """INSERT INTO builds SELECT * FROM other.builds WHERE true ON CONFLICT DO NOTHING""",
)
_MERGE_TRIALS = f"""
INSERT INTO trials (block, line, series, seed, repetition, outcome, time, seconds, signature, message,
                    comparisons)
SELECT b.id, theirs.line, s.id, theirs.seed, theirs.repetition, theirs.outcome, theirs.time, theirs.seconds,
       mine.id, theirs.message, theirs.comparisons
  FROM other.trials theirs {_SAME_BLOCK} {_SAME_SERIES}
  LEFT JOIN other.signatures og ON og.id = theirs.signature
  LEFT JOIN main.signatures mine ON mine.key = og.key AND mine.json = og.json
 WHERE true ON CONFLICT DO NOTHING"""
