"""Another person's ledger, looked at before it is merged: it may be damaged, or made up."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from repro.errors import UsageError
from repro.store import schema
from repro.store.sound import unsound_comparison, unsound_signature
from repro.trial.records import Mode, Outcome

_WHOLE = (
    "trials.seed",
    "trials.repetition",
    "trials.line",
    "inputs.seed",
    "inputs.repetition",
    "inputs.line",
)
_NUMBERS = ("trials.time", "builds.seconds", "builds.time")
_NULL = re.compile(r"NULL value in (\w+)\.(\w+)")
_IS_NULL = "SELECT 1 FROM {0} WHERE typeof({1}) = 'null' LIMIT 1"
"""By its type: SQLite takes `IS NULL` of a column that is declared NOT NULL for false, unread."""
_MOST_LINES = 1_000_000

_NO_PATHS = {
    "blocks.name": "name GLOB '*/*' OR name IN ('', '.', '..')",
    "inputs.path": "path GLOB '/*' OR '/' || path || '/' GLOB '*/../*'",
    "inputs.sha256": "sha256 GLOB '*[^0-9a-f]*'",
}
"""What becomes a part of a path, and when it would lead elsewhere."""

_TEXTS: Mapping[str, Callable[[Any], bool]] = {
    "trials.comparisons": lambda held: isinstance(held, list) and not any(map(unsound_comparison, held)),
    "signatures.json": lambda held: not unsound_signature(held),
    "environments.facts": lambda held: isinstance(held, dict),
}


def check(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a ledger whose tables or values are not what this kit writes; nothing of it runs or is taken in.

    Raises:
        UsageError: with what is wrong.
    """
    wrong = next(_wrong(db), "")
    if wrong:
        raise UsageError(
            f"The ledger {path} cannot be merged: {wrong}.",
            why="It is damaged, or something other than the kit wrote it. Nothing of it was taken in.",
            next_step="Ask for it again, as it lies in their .repro folder or in their report.zip.",
        )


def _wrong(db: sqlite3.Connection) -> Iterator[str]:
    yield from _wrong_tables(db)
    yield from (f"SQLite finds it damaged ({told})" for told in _damage(db))
    for kind, column in (("integer", _WHOLE), ("real", _NUMBERS)):
        for table, _, name in (each.partition(".") for each in column):
            types = "'integer', 'real'" if kind == "real" else "'integer'"
            if _any(db, f"SELECT 1 FROM {table} WHERE typeof({name}) NOT IN ({types}) LIMIT 1"):
                yield f"{table}.{name} holds what is no number"
    for place, condition in _NO_PATHS.items():
        if _any(db, f"SELECT 1 FROM {place.partition('.')[0]} WHERE {condition} LIMIT 1"):
            yield f"{place} holds a path"
    yield from _wrong_words(db)
    yield from _wrong_texts(db)


def _damage(db: sqlite3.Connection) -> Iterator[str]:
    """What SQLite's own check finds.

    A NULL that it sees is looked up: releases such as 3.40 see some in tables without row ids whose key is
    not made of the first columns.
    """
    told = (line for (line,) in db.execute(f"PRAGMA quick_check({_MOST_LINES})"))
    for line in dict.fromkeys(told):
        null = _NULL.fullmatch(line)
        if line == "ok" or (null and not _any(db, _IS_NULL.format(*null.groups()))):
            continue
        yield line


def _wrong_tables(db: sqlite3.Connection) -> Iterator[str]:
    """A view in the place of a table would run on our behalf, for ever if it likes."""
    plain = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
    theirs = {name for (name,) in db.execute(plain)}
    for name, columns in schema.tables().items():
        if name not in theirs or not columns <= schema.columns(db, name):
            yield f"its table {name} is another one than this kit's"


def _wrong_words(db: sqlite3.Connection) -> Iterator[str]:
    for column, kind in (("series.mode", Mode), ("trials.outcome", Outcome)):
        table, _, name = column.partition(".")
        known = {each.value for each in kind}
        for (value,) in db.execute(f"SELECT DISTINCT {name} FROM {table}"):
            if value not in known:
                yield f"{column} holds {str(value)[:40]!r}"


def _wrong_texts(db: sqlite3.Connection) -> Iterator[str]:
    for column, fits in _TEXTS.items():
        table, _, name = column.partition(".")
        for (text,) in db.execute(f"SELECT {name} FROM {table} WHERE {name} IS NOT NULL"):
            if not _fits(text, fits):
                yield f"{column} holds what no trial records"


def _fits(text: Any, fits: Callable[[Any], bool]) -> bool:
    try:
        return fits(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return False


def _any(db: sqlite3.Connection, statement: str) -> bool:
    return db.execute(statement).fetchone() is not None
