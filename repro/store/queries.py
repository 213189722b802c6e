"""Questions to the ledger. Every answer counts a trial once, however often it was recorded."""

from __future__ import annotations

import json
import sqlite3
import statistics
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from repro.stats.compare import PairedCounts
from repro.store import schema
from repro.store.blocks import whole
from repro.store.model import Build, Environment, KeptInputs, Series, Tally, Trial
from repro.store.sound import sound_comparisons, sound_signature
from repro.trial.records import Mode, Outcome

_SERIES = "s.cell, s.revision, s.test, s.mode, s.gpu"
_SAMPLE = 300
"""Trials of a series whose median stands for all of them in an estimate of time."""


class Queries:
    """What can be asked of an open ledger.

    Filters (`cell`, `revision`, `test`, `mode`, `gpu`) name one value of a series each; None leaves all in.
    """

    def __init__(self, db: sqlite3.Connection, path: Path, lock: threading.RLock) -> None:
        self._db = db
        self.path = path
        self._lock = lock

    def tally(self, series: Series, seeds: range | None = None) -> Tally:
        """How often each outcome came in a series, or for some seeds of it: all from first to last."""
        if seeds is None or self._has_only(series, seeds):
            rows = self._all(f"SELECT outcome, n FROM tallies WHERE series = {_ID_OF}", *_fields(series))
        else:
            rows = self._all(
                f"SELECT outcome, count(*) FROM trials WHERE series = {_ID_OF} AND seed >= ? AND seed < ?"
                " AND counted GROUP BY outcome",
                *_fields(series),
                seeds.start,
                seeds.stop,
            )
        with schema.understood(self.path):
            return Tally(series=series, counts={Outcome(outcome): n for outcome, n in rows if n})

    def _has_only(self, series: Series, seeds: range) -> bool:
        """Whether all seeds of a series lie in a range: two look-ups, where counting takes one a trial."""
        ends = self._all(
            "SELECT (SELECT seed FROM trials WHERE series = s.id ORDER BY seed LIMIT 1),"
            " (SELECT seed FROM trials WHERE series = s.id ORDER BY seed DESC LIMIT 1)"
            f" FROM series s WHERE s.id = {_ID_OF}",
            *_fields(series),
        )
        return all(seed is not None and seeds.start <= seed < seeds.stop for row in ends for seed in row)

    def tallies(
        self,
        *,
        cell: str | None = None,
        revision: str | None = None,
        test: str | None = None,
        mode: Mode | None = None,
        gpu: str | None = None,
    ) -> list[Tally]:
        """The tally of every series that the filters leave, ordered by series. Takes no time per trial."""
        where, values = _where(cell=cell, revision=revision, test=test, mode=mode, gpu=gpu)
        counts: dict[Series, dict[Outcome, int]] = {}
        rows = self._all(
            f"SELECT {_SERIES}, t.outcome, t.n FROM tallies t JOIN series s ON s.id = t.series {where}",
            *values,
        )
        with schema.understood(self.path):
            for *fields, outcome, n in rows:
                if whole(n):
                    counts.setdefault(_series(fields), {})[Outcome(outcome)] = n
        return [Tally(series=series, counts=counts[series]) for series in sorted(counts)]

    def recount(self) -> dict[Series, dict[Outcome, int]]:
        """The tallies counted from the trials themselves: slow, and equal to `tallies` or there is a bug."""
        counts: dict[Series, dict[Outcome, int]] = {}
        for *fields, outcome, n in self._all(
            f"SELECT {_SERIES}, t.outcome, count(*) FROM"
            " (SELECT series, outcome, min(block) FROM trials WHERE counted"
            "   GROUP BY series, outcome, seed, repetition) t"
            " JOIN series s ON s.id = t.series GROUP BY s.id, t.outcome"
        ):
            counts.setdefault(_series(fields), {})[Outcome(outcome)] = n
        return counts

    def done_seeds(self, series: Series) -> set[int]:
        """Seeds that need no further trial: what came of them says something about the test."""
        return {
            seed
            for (seed,) in self._all(
                f"SELECT seed FROM trials WHERE series = {_ID_OF} AND {_FINAL}", *_fields(series)
            )
        }

    def done_repetitions(self, series: Series, seed: int) -> set[int]:
        """Numbers of the trials with this seed that need no further one (where the mode repeats seeds)."""
        return {
            repetition
            for (repetition,) in self._all(
                f"SELECT repetition FROM trials WHERE series = {_ID_OF} AND seed = ? AND {_FINAL}",
                *_fields(series),
                seed,
            )
        }

    def sequence(self, series: Series) -> list[bool]:
        """Whether each trial failed, in the order in which they ran; of those that enter the rate."""
        return [
            bool(failed)
            for (failed,) in self._all(
                f"SELECT outcome = 'FAILED' FROM trials WHERE series = {_ID_OF} AND {_RATED}"
                " ORDER BY time, block, line",
                *_fields(series),
            )
        ]

    def failing_seeds(self, series: Series) -> list[int]:
        """Seeds that failed with the target signature, ascending."""
        return [
            seed
            for (seed,) in self._all(
                f"SELECT DISTINCT seed FROM trials WHERE series = {_ID_OF} AND {_NOT_PASSED}"
                " AND outcome = 'FAILED' ORDER BY seed",
                *_fields(series),
            )
        ]

    def paired(self, a: Series, b: Series) -> PairedCounts:
        """How two series ended seed by seed, over the seeds that enter the rate in both."""
        rows = self._all(
            "SELECT x.outcome = 'FAILED', y.outcome = 'FAILED', count(*) FROM trials x"
            " JOIN trials y ON y.seed = x.seed AND y.repetition = x.repetition"
            f" WHERE x.series = {_ID_OF} AND y.series = {_ID_OF}"
            " AND x.counted AND x.outcome IN ('PASSED', 'FAILED')"
            " AND y.counted AND y.outcome IN ('PASSED', 'FAILED') GROUP BY 1, 2",
            *_fields(a),
            *_fields(b),
        )
        n = {(bool(in_a), bool(in_b)): count for in_a, in_b, count in rows}
        return PairedCounts(
            both=n.get((True, True), 0),
            a_only=n.get((True, False), 0),
            b_only=n.get((False, True), 0),
            neither=n.get((False, False), 0),
        )

    def trials(
        self,
        *,
        cell: str | None = None,
        revision: str | None = None,
        test: str | None = None,
        mode: Mode | None = None,
        gpu: str | None = None,
        outcomes: Iterable[Outcome] | None = None,
        seed: int | None = None,
        repeats: bool = False,
    ) -> Iterator[Trial]:
        """Recorded trials, block by block, without holding them all in memory.

        Args:
            repeats: also later trials of a key that has one (`counted` is False for them).
        """
        where, values = _where(cell=cell, revision=revision, test=test, mode=mode, gpu=gpu)
        extra = [] if repeats else ["t.counted"]
        if outcomes is not None:
            wanted = [outcome.value for outcome in outcomes]
            extra.append(f"t.outcome IN ({', '.join('?' * len(wanted))})")
            extra += (
                [] if Outcome.PASSED.value in wanted else ["t.outcome <> 'PASSED'"]
            )  # as the index has it
            values += wanted
        if seed is not None:
            extra.append("t.seed = ?")
            values.append(seed)
        condition = " AND ".join([where or "WHERE true", *extra])
        for row in self._each(f"{_TRIALS} {condition} ORDER BY t.block, t.line", *values):
            with schema.understood(self.path):
                trial = _trial(row)
            yield trial

    def disagreements(self, series: Series) -> list[Trial]:
        """Later trials of a seed that ended the other way than its first: not the seed decides alone."""
        rows = self._all(
            f"{_TRIALS} WHERE t.series = {_ID_OF} AND NOT t.counted AND disagrees ORDER BY t.block, t.line",
            *_fields(series),
        )
        with schema.understood(self.path):
            return [_trial(row) for row in rows]

    def kept_inputs(self, series: Series) -> list[KeptInputs]:
        """Inputs of failing trials that were kept, in the order in which they were."""
        rows = self._all(
            "SELECT i.seed, i.repetition, b.name, i.path, i.sha256, i.failed_again, i.same_elements"
            f" FROM inputs i JOIN blocks b ON b.id = i.block WHERE i.series = {_ID_OF}"
            " ORDER BY i.block, i.line",
            *_fields(series),
        )
        return [
            KeptInputs(
                series=series,
                seed=seed,
                repetition=repetition,
                block=block,
                path=path,
                sha256=sha256,
                failed_again=None if again is None else bool(again),
                same_elements=None if same is None else bool(same),
            )
            for seed, repetition, block, path, sha256, again, same in rows
        ]

    def environments(self, cell: str | None = None) -> list[Environment]:
        """Every environment that trials ran in, or those of one cell, in the order of their first block."""
        rows = self._all(
            "SELECT hash, cell, facts FROM environments WHERE ? IS NULL OR cell = ? ORDER BY id", cell, cell
        )
        with schema.understood(self.path):
            return [Environment(hash=hash_, cell=cell, facts=_facts(facts)) for hash_, cell, facts in rows]

    def newest_blocks(self, most: int, *, cell: str, revision: str, test: str, mode: Mode) -> list[str]:
        """Names of blocks of trials that are about the same, the newest first."""
        rows = self._all(
            "SELECT name FROM blocks WHERE cell = ? AND revision = ? AND test = ? AND mode = ?"
            " ORDER BY id DESC LIMIT ?",
            *(cell, revision, test, mode.value, most),
        )
        return [name for (name,) in rows]

    def garbled_lines(self) -> dict[str, int]:
        """Blocks with lines that are no record, and how many."""
        return dict(self._all("SELECT name, garbled FROM blocks WHERE garbled > 0 ORDER BY name"))

    def seconds_per_trial(self) -> dict[str, float]:
        """Median seconds of a trial in each cell, over a few hundred trials of each of its series."""
        seconds: dict[str, list[float]] = {}
        for number, cell in self._all("SELECT id, cell FROM series"):
            for (value,) in self._all(
                "SELECT seconds FROM trials WHERE series = ? AND counted AND seconds IS NOT NULL LIMIT ?",
                number,
                _SAMPLE,
            ):
                seconds.setdefault(cell, []).append(value)
        return {cell: statistics.median(values) for cell, values in seconds.items()}

    def builds(self, cell: str | None = None) -> list[Build]:
        """Attempts to make cells, or one cell, oldest first."""
        rows = self._all(
            "SELECT cell, digest, ok, seconds, log_tail, time FROM builds"
            " WHERE ? IS NULL OR cell = ? ORDER BY time",
            cell,
            cell,
        )
        return [
            Build(cell=cell, digest=digest, ok=bool(ok), seconds=seconds, log_tail=log_tail, time=time)
            for cell, digest, ok, seconds, log_tail, time in rows
        ]

    def build_seconds(self) -> dict[str, float]:
        """Seconds that the last successful build of each cell took."""
        return {build.cell: build.seconds for build in self.builds() if build.ok}

    def _all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock, schema.explained(self.path):
            return self._db.execute(statement, values).fetchall()

    def _each(self, statement: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        with self._lock, schema.explained(self.path):
            rows = self._db.execute(statement, values)
        while True:
            with self._lock, schema.explained(self.path):
                some = rows.fetchmany(1000)
            if not some:
                return
            yield from some


_ID_OF = "(SELECT id FROM series WHERE cell = ? AND revision = ? AND test = ? AND mode = ? AND gpu = ?)"
_FINAL = "counted AND outcome NOT IN ('INFRA', 'BUILD_FAILED', 'TEST_MISSING')"
_NOT_PASSED = "counted AND outcome <> 'PASSED'"
"""The condition of an index, which is used only where a query has it word for word."""
_RATED = "counted AND outcome IN ('PASSED', 'FAILED')"
_TRIALS = f"""
SELECT {_SERIES}, t.seed, t.repetition, t.outcome, t.seconds, t.time, g.key, g.json, t.message, t.comparisons,
       b.name, t.line, t.counted,
       NOT t.counted AND t.outcome IN ('PASSED', 'FAILED') AND EXISTS (
         SELECT 1 FROM trials first WHERE first.series = t.series AND first.seed = t.seed
            AND first.repetition = t.repetition AND first.counted
            AND first.outcome IN ('PASSED', 'FAILED') AND first.outcome <> t.outcome) AS disagrees
  FROM trials t JOIN series s ON s.id = t.series JOIN blocks b ON b.id = t.block
  LEFT JOIN signatures g ON g.id = t.signature"""


def _where(**filters: str | None) -> tuple[str, list[Any]]:
    """A WHERE clause on the series, or "", and its values."""
    given = {name: value for name, value in filters.items() if value is not None}
    clause = " AND ".join(f"s.{name} = ?" for name in given)
    values = [value.value if isinstance(value, Mode) else value for value in given.values()]
    return ("WHERE " + clause if clause else ""), values


def _fields(series: Series) -> tuple[str, ...]:
    return series.cell, series.revision, series.test, series.mode.value, series.gpu


def _series(fields: Iterable[str]) -> Series:
    cell, revision, test, mode, gpu = fields
    return Series(cell=cell, revision=revision, test=test, mode=Mode(mode), gpu=gpu)


def _facts(text: str) -> dict[str, Any]:
    held = json.loads(text)
    if not isinstance(held, dict):
        raise ValueError("facts")
    return held


def _trial(row: tuple[Any, ...]) -> Trial:
    seed, repetition, outcome, seconds, time, key, signature, message, comparisons, block, line = row[5:16]
    return Trial(
        series=_series(row[:5]),
        seed=seed,
        repetition=repetition,
        outcome=Outcome(outcome),
        seconds=seconds,
        time=time,
        signature_key=key,
        signature=None if signature is None else sound_signature(signature),
        message=message or "",
        comparisons=sound_comparisons(comparisons),
        block=block,
        line=line,
        counted=bool(row[16]),
        disagrees=bool(row[17]),
    )
