"""Whether two cells differ, and which of many do."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeVar

from repro.stats.rates import CONFIDENCE, log_mixture, wilson
from repro.stats.special import log_choose

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class PairedCounts:
    """How trials with the same seeds ended in two cells."""

    both: int = 0
    a_only: int = 0
    b_only: int = 0
    neither: int = 0

    @property
    def n(self) -> int:
        """Seeds that ran in both cells."""
        return self.both + self.a_only + self.b_only + self.neither


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How far the failure rates of two cells lie apart.

    Args:
        difference: rate of b less rate of a, as observed; 0.0 without trials.
        low: lower end of the difference's interval.
        high: upper end of the difference's interval.
        p_value: probability of a difference at least as large if there is none.
        confidence: of the interval.
        test: name of the test that the p-value is of.
    """

    difference: float
    low: float
    high: float
    p_value: float
    confidence: float
    test: str


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One comparison of many: `q_value` is the smallest false discovery rate at which it is a finding."""

    comparison: Comparison
    q_value: float
    differs: bool


def compare_paired(counts: PairedCounts, confidence: float = CONFIDENCE) -> Comparison:
    """Compare two cells that ran the same seeds: exact McNemar test, interval of Bonett and Price.

    More powerful than `compare_unpaired` where the inputs decide; only seeds that fail in one cell and
    not in the other tell anything. Sources: McNemar, Psychometrika 12 (1947) 153; Bonett and Price,
    J. Educ. Behav. Stat. 37 (2012) 479, eq. 7.
    """
    n, a, b = counts.n, counts.a_only, counts.b_only
    share_a, share_b = (a + 1) / (n + 2), (b + 1) / (n + 2)
    middle = share_b - share_a
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    spread = z * math.sqrt(max(share_a + share_b - middle**2, 0.0) / (n + 2))
    return Comparison(
        difference=(b - a) / n if n else 0.0,
        low=max(middle - spread, -1.0),
        high=min(middle + spread, 1.0),
        p_value=mcnemar(a, b),
        confidence=confidence,
        test="McNemar, exact",
    )


def compare_unpaired(
    failed_a: int, trials_a: int, failed_b: int, trials_b: int, confidence: float = CONFIDENCE
) -> Comparison:
    """Compare two cells that ran different seeds: Fisher's exact test, Newcombe's interval.

    Source of the interval: Newcombe, Stat. Med. 17 (1998) 873, method 10 (Wilson intervals combined).

    Raises:
        ValueError: for more failures than trials.
    """
    a, b = wilson(failed_a, trials_a, confidence), wilson(failed_b, trials_b, confidence)
    if a.rate is None or b.rate is None:
        difference, low, high = 0.0, -1.0, 1.0
    else:
        difference = b.rate - a.rate
        low = difference - math.hypot(b.rate - b.low, a.high - a.rate)
        high = difference + math.hypot(b.high - b.rate, a.rate - a.low)
    return Comparison(
        difference=difference,
        low=max(low, -1.0),
        high=min(high, 1.0),
        p_value=fisher(failed_a, trials_a, failed_b, trials_b),
        confidence=confidence,
        test="Fisher, exact",
    )


def mcnemar(a_only: int, b_only: int) -> float:
    """Two-sided p-value of the exact McNemar test: twice the smaller tail of Binomial(a + b, 1/2)."""
    n, fewer = a_only + b_only, min(a_only, b_only)
    tail = math.fsum(math.exp(log_choose(n, k) - n * math.log(2)) for k in range(fewer + 1))
    return min(1.0, 2 * tail)


def mcnemar_anytime(a_only: int, b_only: int) -> float:
    """p-value of the same hypothesis that stays valid however often one looks and whenever one stops.

    The inverse of the mixture ratio that `rates.anytime` is built on, at p = 1/2; larger than `mcnemar`.
    """
    return min(1.0, math.exp((a_only + b_only) * math.log(0.5) - log_mixture(a_only, b_only)))


def fisher(failed_a: int, trials_a: int, failed_b: int, trials_b: int) -> float:
    """Two-sided p-value of Fisher's exact test: all tables at most as likely as the observed one.

    Raises:
        ValueError: for more failures than trials.
    """
    if not (0 <= failed_a <= trials_a and 0 <= failed_b <= trials_b):
        raise ValueError(f"{failed_a} of {trials_a} and {failed_b} of {trials_b}")
    failed, trials = failed_a + failed_b, trials_a + trials_b
    total = log_choose(trials, failed)

    def log_p(k: int) -> float:
        return log_choose(trials_a, k) + log_choose(trials_b, failed - k) - total

    limit = log_p(failed_a) + 1e-7  # equally likely tables differ by rounding
    possible = range(max(0, failed - trials_b), min(failed, trials_a) + 1)
    return min(1.0, math.fsum(math.exp(p) for p in map(log_p, possible) if p <= limit))


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values (q-values) in the given order; q <= 0.05 finds with 5 % false discoveries at most.

    Source: Benjamini and Hochberg, J. R. Stat. Soc. B 57 (1995) 289.
    """
    n = len(p_values)
    q_values = [0.0] * n
    least = 1.0
    for rank, index in sorted(enumerate(sorted(range(n), key=p_values.__getitem__), start=1), reverse=True):
        least = min(least, p_values[index] * n / rank)
        q_values[index] = least
    return q_values


def judge(comparisons: Mapping[K, Comparison], false_discovery_rate: float = 0.05) -> dict[K, Judged]:
    """Which of many comparisons are findings, with the rate of false ones among them controlled."""
    q_values = benjamini_hochberg([comparison.p_value for comparison in comparisons.values()])
    return {
        key: Judged(comparison=comparison, q_value=q, differs=q <= false_discovery_rate)
        for (key, comparison), q in zip(comparisons.items(), q_values, strict=True)
    }
