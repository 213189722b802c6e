"""Bounded questions to a ledger's file: what a report looks at takes no longer with millions of trials.

`Ledger` answers about all trials of a series; here each question reads a stated number of rows, by the
indexes that the ledger has.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.store.model import Series
from repro.store.schema import explained, understood
from repro.store.sound import sound_comparisons, sound_signature
from repro.trial.records import Outcome

Key = tuple[int, int]
"""Seed and repetition."""

STEPS = 200_000
"""Look-ups in search of failing trials, over all series: where failures are rarer, fewer are looked at."""


@dataclass(frozen=True, kw_only=True)
class Failing:
    """One failing trial."""

    series: Series
    seed: int
    signature_key: str
    signature: Mapping[str, Any]
    message: str
    comparisons: Sequence[Mapping[str, Any]]


class Reader:
    """A ledger's file, opened for reading; see `open_reader`."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path
        self._ids: dict[tuple[str, ...], int] = {
            (cell, revision, test, mode, gpu): number
            for number, cell, revision, test, mode, gpu in self._all(
                "SELECT id, cell, revision, test, mode, gpu FROM series"
            )
        }
        rows = self._all("SELECT id, key, json FROM signatures")
        with understood(path):
            self._signatures = {number: (key, sound_signature(text)) for number, key, text in rows}
        self._block_ids: dict[tuple[str, ...], list[int]] | None = None
        self._steps = STEPS

    def outcomes(self, series: Series, most: int) -> dict[Key, bool]:
        """Whether each trial failed, of those that enter the rate; the first `most` by seed."""
        rows = self._all(
            "SELECT seed, repetition, outcome FROM (SELECT seed, repetition, outcome, counted FROM trials"
            " INDEXED BY trials_by_key WHERE series = ? ORDER BY seed, repetition LIMIT ?)"
            " WHERE counted AND outcome IN ('PASSED', 'FAILED')",
            self._id(series),
            most,
        )
        return {(seed, repetition): outcome == Outcome.FAILED.value for seed, repetition, outcome in rows}

    def passing(self, series: Series, most: int) -> list[list[dict[str, Any]]]:
        """The comparisons of passing trials, among the first `most` trials by seed."""
        rows = self._all(
            "SELECT comparisons FROM (SELECT comparisons, outcome, counted FROM trials"
            " INDEXED BY trials_by_key WHERE series = ? ORDER BY seed, repetition LIMIT ?)"
            " WHERE counted AND outcome = 'PASSED' AND comparisons IS NOT NULL",
            self._id(series),
            most,
        )
        with understood(self._path):
            return [sound_comparisons(text) for (text,) in rows]

    def failing(self, series: Series, most: int) -> list[Failing]:
        """The first failing trials, in the order in which blocks came in; by way of their signatures.

        Takes a step for each block of the series, and reads no trial that passed.
        """
        found: list[Failing] = []
        for block in self._blocks(series):
            for signature in self._signatures:
                self._steps -= 1
                if len(found) >= most or self._steps < 0:
                    return found
                found += self._failing_in(series, block, signature, most - len(found))
        return found

    def _failing_in(self, series: Series, block: int, signature: int, most: int) -> list[Failing]:
        key, facts = self._signatures[signature]
        rows = self._all(
            "SELECT seed, message, comparisons FROM trials INDEXED BY trials_by_signature WHERE signature = ?"
            " AND block = ? AND series = ? AND counted AND outcome = 'FAILED' ORDER BY line LIMIT ?",
            signature,
            block,
            self._id(series),
            most,
        )
        with understood(self._path):
            return [
                Failing(
                    series=series,
                    seed=seed,
                    signature_key=key,
                    signature=facts,
                    message=message or "",
                    comparisons=sound_comparisons(comparisons),
                )
                for seed, message, comparisons in rows
            ]

    def _blocks(self, series: Series) -> list[int]:
        if self._block_ids is None:
            self._block_ids = defaultdict(list)
            for number, *about in self._all("SELECT id, cell, revision, test, mode FROM blocks ORDER BY id"):
                self._block_ids[tuple(about)].append(number)
        return self._block_ids.get((series.cell, series.revision, series.test, series.mode.value), [])

    def _id(self, series: Series) -> int:
        return self._ids.get(_fields(series), -1)

    def _all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with explained(self._path):
            return self._db.execute(statement, values).fetchall()


@contextmanager
def open_reader(path: Path) -> Iterator[Reader]:
    """A ledger's file, opened for reading beside whoever writes to it.

    Raises:
        NotReadyError: it is damaged, or no ledger.
    """
    with explained(path):
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        yield Reader(db, path)
    finally:
        db.close()


def _fields(series: Series) -> tuple[str, str, str, str, str]:
    return series.cell, series.revision, series.test, series.mode.value, series.gpu
