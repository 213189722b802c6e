"""Another person's ledger, looked at before it is merged: it may be damaged, or made up."""

from __future__ import annotations

import json
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
            next_step="Ask for it again, as it lies in their .repro folder or in the evidence of their report.",
        )


def _wrong(db: sqlite3.Connection) -> Iterator[str]:
    yield from _wrong_tables(db)
    (told,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if told != "ok":
        yield f"SQLite finds it damaged ({told})"
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
