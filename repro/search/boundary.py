"""The check of a boundary before a name is stated: fresh trials on both of its sides, interleaved.

What led the search to a pair of neighbours is partly chance: a single stray failure can point at an innocent
candidate, and the posterior is only as honest as its prior. So the trials made after the pair was first
suspected are judged by themselves: those of the lower neighbour must look like the other trials before the
change, those of the upper one like the other trials after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, log
from typing import NamedTuple

from repro.search.posterior import Model
from repro.search.prior import RatePrior

Counts = Mapping[int, tuple[int, int]]


@dataclass(slots=True)
class Boundary:
    """A pair of candidates under check, and the trials made of them since the check began.

    Args:
        low: the last candidate before the suspected change.
        high: the first candidate after it.
        rank: 1 for the first pair that the search checks, 2 for the second ...
    """

    low: int
    high: int
    rank: int
    fresh: dict[int, tuple[int, int]] = field(default_factory=dict)

    def observe(self, index: int, failed: int, passed: int) -> None:
        """Count trials of `index`, if it is one of the pair."""
        if index in (self.low, self.high):
            before = self.fresh.get(index, (0, 0))
            self.fresh[index] = (before[0] + failed, before[1] + passed)

    def trials(self, index: int) -> int:
        """Fresh trials of one side."""
        return sum(self.fresh.get(index, (0, 0)))

    def needed_contrast(self) -> float:
        """The log ratio of `Support.contrast` from which the pair counts as different.

        A ratio of two predictions of fresh trials is a martingale where the one below is true, so it ever
        reaches x with a chance of 1 / x at most (Ville). On a slope the search goes from pair to pair until
        one looks like a step, so each pair must show more than the one before: the k-th k^4. The first
        pairs lean on `shape`, which weighs all trials; this bounds how long a walk can go on being lucky.
        """
        return 4.0 * log(self.rank)

    def support(self, counts: Counts, model: Model) -> Support:
        """How well the fresh trials bear the boundary out, by predictions learnt from all other trials."""
        low, high = (self.fresh.get(index, (0, 0)) for index in (self.low, self.high))
        before = _pooled(counts, -inf, self.low)
        after = _pooled(counts, self.high, inf)
        low_before = _predicted(low, _less(before, low), model.before)
        high_after = _predicted(high, _less(after, high), model.after)
        together = model.steady.evidence(low[0] + high[0], low[1] + high[1]).log_marginal
        return Support(
            low_before - _predicted(low, after, model.after),
            high_after - _predicted(high, before, model.before),
            low_before + high_after - together,
        )


class Support(NamedTuple):
    """Natural logarithms of likelihood ratios of the fresh trials.

    Attributes:
        low, high: that this neighbour belongs to its own side, against the other side.
        contrast: that both belong to their own sides, against one rate of their own for the two: a pair on
            a slope, or between two steps, is alike although neither side's rate fits it.
    """

    low: float
    high: float
    contrast: float


def _pooled(counts: Counts, first: float, last: float) -> tuple[int, int]:
    inside = [count for index, count in counts.items() if first <= index <= last]
    return sum(count[0] for count in inside), sum(count[1] for count in inside)


def _less(counts: tuple[int, int], part: tuple[int, int]) -> tuple[int, int]:
    return counts[0] - part[0], counts[1] - part[1]


def _predicted(fresh: tuple[int, int], known: tuple[int, int], prior: RatePrior) -> float:
    both = prior.evidence(known[0] + fresh[0], known[1] + fresh[1])
    return both.log_marginal - prior.evidence(*known).log_marginal
