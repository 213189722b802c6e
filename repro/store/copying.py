"""A copy of a ledger that is fit to be given away: without what identifies, and no larger than needed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from repro.store.schema import explained

WHOLE = 20_000
"""Trials up to which a ledger is copied whole."""

_TABLES = ("series", "environments", "signatures", "blocks", "builds", "inputs")
_TEXTS = {
    "series": ("revision", "test"),
    "environments": ("facts",),
    "signatures": ("key", "json"),
    "builds": ("log_tail",),
    "inputs": ("path",),
    "blocks": ("name", "revision", "test"),
    "trials": ("message", "comparisons"),
}
"""The columns that may hold what identifies."""


def copy_ledger(
    source: Path, target: Path, clean: Callable[[str], str], *, whole: bool = False
) -> tuple[int, int]:
    """Copy a ledger; trials in the copy, and trials in the source.

    Of a large ledger the copy holds the first trials of each series, by seed; its tallies count these.

    Args:
        target: where the copy goes; must not exist.
        clean: takes out of a text what identifies.
        whole: copy all trials, however many they are.

    Raises:
        NotReadyError: the source is damaged, or no ledger.
    """
    with explained(source), closing(sqlite3.connect(target, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("ATTACH ? AS source", (str(source),))
        db.create_function("redacted", 1, lambda text: clean(text) if isinstance(text, str) else text)
        db.execute("BEGIN")
        total = _count(db, "source.tallies")
        _fill(db, None if whole or total <= WHOLE else max(20, WHOLE // max(_rows(db, "source.series"), 1)))
        copied = _count(db, "main.tallies")
        db.execute("COMMIT")
        db.execute("DETACH source")
    return copied, total


def _count(db: sqlite3.Connection, tallies: str) -> int:
    return int(db.execute(f"SELECT coalesce(sum(n), 0) FROM {tallies}").fetchone()[0])


def _rows(db: sqlite3.Connection, table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _fill(db: sqlite3.Connection, most: int | None) -> None:
    """Tables, then rows, then indexes, then triggers: these would only count again what is copied."""
    for kind in ("table", "rows", "index", "trigger"):
        if kind == "rows":
            _copy_rows(db, most)
            continue
        for (statement,) in _statements(db, kind):
            db.execute(statement)
    version = db.execute("PRAGMA source.user_version").fetchone()[0]
    db.execute(f"PRAGMA main.user_version = {version}")


def _statements(db: sqlite3.Connection, kind: str) -> Iterator[tuple[str]]:
    yield from db.execute(
        "SELECT sql FROM source.sqlite_master WHERE type = ? AND sql IS NOT NULL", (kind,)
    ).fetchall()


def _copy_rows(db: sqlite3.Connection, most: int | None) -> None:
    for table in _TABLES:
        db.execute(f"INSERT OR IGNORE INTO main.{table} SELECT {_columns(db, table)} FROM source.{table}")
    columns = _columns(db, "trials")
    if most is None:
        db.execute(f"INSERT INTO main.trials SELECT {columns} FROM source.trials")
    else:
        for (series,) in db.execute("SELECT id FROM source.series").fetchall():
            db.execute(
                f"INSERT INTO main.trials SELECT {columns} FROM source.trials INDEXED BY trials_by_key"
                " WHERE series = ? ORDER BY seed, repetition LIMIT ?",
                (series, most),
            )
    db.execute(
        "INSERT INTO main.tallies SELECT series, outcome, count(*) FROM main.trials WHERE counted"
        " GROUP BY 1, 2"
    )


def _columns(db: sqlite3.Connection, table: str) -> str:
    """The columns of a table as a selection, with those that may identify redacted."""
    names = [row[1] for row in db.execute(f"PRAGMA source.table_info({table})")]
    return ", ".join(f"redacted({name})" if name in _TEXTS.get(table, ()) else name for name in names)
