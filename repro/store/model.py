"""What goes into the ledger and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from repro.trial.records import Mode, Outcome

PROVISIONAL = (Outcome.INFRA, Outcome.BUILD_FAILED, Outcome.TEST_MISSING)
"""Outcomes that say nothing about the test: tried again, and replaced by whatever comes of it."""


@dataclass(frozen=True, kw_only=True, order=True)
class Series:
    """Trials whose outcomes may be added up: all that is in a trial's key but seed and repetition.

    Args:
        cell: id of the cell.
        revision: revision of the subject: a commit id, or the hash of a folder.
        test: pytest id of the target test.
        mode: how its trials differ from each other.
        gpu: model of the GPU as the trial's process saw it, or "" where there was none.
    """

    cell: str
    revision: str
    test: str
    mode: Mode
    gpu: str = ""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How often each outcome came in a series; every trial once."""

    series: Series
    counts: Mapping[Outcome, int] = field(default_factory=dict)

    def __getitem__(self, outcome: Outcome) -> int:
        return self.counts.get(outcome, 0)

    @property
    def failed(self) -> int:
        """Trials that failed with the target signature."""
        return self[Outcome.FAILED]

    @property
    def passed(self) -> int:
        """Trials that passed."""
        return self[Outcome.PASSED]

    @property
    def n(self) -> int:
        """Trials that enter the failure rate."""
        return self.failed + self.passed

    @property
    def others(self) -> dict[Outcome, int]:
        """Outcomes that enter no failure rate, and how often they came."""
        return {outcome: n for outcome, n in self.counts.items() if n and not outcome.counts}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One recorded trial, and where its evidence stands.

    Args:
        repetition: number among the trials of the same seed; 0 where the mode repeats none.
        seconds: how long the test ran; None where that is not known.
        time: seconds since the epoch when it ended; 0.0 where the record has none.
        signature: what a failure is recognised by, as the trial's process recorded it; or None.
        comparisons: what was measured; elements are listed for trials that did not pass.
        block: id of the block, the name of its folder.
        line: line in the block's records.jsonl, from 1.
        counted: whether it is the trial of its key; False for a later trial of the same key.
        disagrees: whether the trial of its key had the other of PASSED and FAILED.
    """

    series: Series
    seed: int
    repetition: int
    outcome: Outcome
    seconds: float | None
    time: float
    signature_key: str | None
    signature: Mapping[str, Any] | None
    message: str
    comparisons: list[dict[str, Any]]
    block: str
    line: int
    counted: bool = True
    disagrees: bool = False


@dataclass(frozen=True, kw_only=True)
class Running:
    """The trial that a block began and has not ended: running now, or what the process died of."""

    seed: int
    repetition: int
    since: float


@dataclass(frozen=True, kw_only=True)
class Ingested:
    """What one look at a block file brought.

    Args:
        trials: trials that were new.
        garbled: lines of the block, all told, that are no record; they are skipped.
        running: the trial that is open at the end of what was read, or None.
        ended: whether the block ran through.
        problem: why nothing can be read from the block, or "".
    """

    trials: int = 0
    garbled: int = 0
    running: Running | None = None
    ended: bool = False
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What a cell's process really imported, and where it ran, as it said so itself."""

    hash: str
    cell: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class KeptInputs:
    """The second run of a failing seed, for whose sake its random inputs were kept as bits.

    Args:
        path: file, relative to the block's folder; "" where none was kept.
        failed_again: whether the trial failed in the second run; None if not known.
        same_elements: whether the same elements differed then; None if not known.
    """

    series: Series
    seed: int
    repetition: int
    block: str
    path: str
    sha256: str
    failed_again: bool | None
    same_elements: bool | None


@dataclass(frozen=True, kw_only=True)
class Build:
    """One attempt to make a cell; `seconds` of wall clock, `time` since the epoch."""

    cell: str
    digest: str
    ok: bool
    seconds: float
    log_tail: str
    time: float
