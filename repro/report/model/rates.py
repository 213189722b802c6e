"""How often cells fail, and which of them differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from repro.stats import Judged, PairedCounts, Rate
from repro.store import Series
from repro.trial.records import Outcome


@dataclass(frozen=True, kw_only=True)
class CellRate:
    """How often one series failed.

    Args:
        rate: with an interval that stays valid however sampling was stopped.
        others: trials that enter no rate, by outcome.
        failing_seeds: the first few.
    """

    series: Series
    rate: Rate
    others: Mapping[Outcome, int] = field(default_factory=dict)
    failing_seeds: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two series compared: seed by seed on one GPU model, or by their counts alone.

    Args:
        counts: seed by seed; None where the seeds mean different inputs.
    """

    a: Series
    b: Series
    counts: PairedCounts | None
    judged: Judged


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Every comparison of cells that was made, with false discoveries controlled over all of them.

    Args:
        pairs: findings first.
        reference: the series that all others were compared with, or None where each pair was.
        seeds: seeds a series that were looked at, at most.
        all_seeds: whether these are all that it ran.
    """

    pairs: Sequence[Pair] = ()
    reference: Series | None = None
    seeds: int = 0
    all_seeds: bool = True

    @property
    def differing(self) -> list[Pair]:
        """The pairs that differ."""
        return [pair for pair in self.pairs if pair.judged.differs]
