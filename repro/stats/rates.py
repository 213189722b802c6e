"""Failure rates with intervals: for a number of trials fixed beforehand, and for stopping early.

docs/statistics.md says what each interval promises, with the sources of the formulas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

from repro.stats.special import beta_cdf, crossing, log_beta

CONFIDENCE = 0.95


class Method(StrEnum):
    """What an interval promises."""

    WILSON = "wilson"
    """Holds the true rate with the stated confidence, on average over rates, at a fixed number of trials."""
    EXACT = "exact"
    """The same at every single rate; wider."""
    ANYTIME = "anytime"
    """Holds the true rate at every number of trials at once: looking at it and stopping is allowed."""

    @property
    def said(self) -> str:
        """What a reader of a table must know of it."""
        return {
            Method.WILSON: "Wilson's, for a fixed number of trials",
            Method.EXACT: "Clopper and Pearson's, for a fixed number of trials",
            Method.ANYTIME: "valid whenever trials stopped",
        }[self]


@dataclass(frozen=True)
class Interval:
    """Where a rate lies with a confidence."""

    low: float
    high: float
    confidence: float

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return (self.high - self.low) / 2

    def __contains__(self, rate: float) -> bool:
        return self.low <= rate <= self.high


@dataclass(frozen=True)
class Rate:
    """A failure rate and where it lies.

    Args:
        failed: trials that failed with the target signature.
        trials: trials that passed or failed with it; no other outcome is in here.
        rate: failed / trials; None without trials.
        low: lower end of the interval.
        high: upper end of the interval.
        confidence: of the interval.
        method: what the interval promises.
    """

    failed: int
    trials: int
    rate: float | None
    low: float
    high: float
    confidence: float
    method: Method

    @property
    def interval(self) -> Interval:
        """The interval alone."""
        return Interval(self.low, self.high, self.confidence)

    def to_json(self) -> dict[str, int | float | None]:
        """The form of every `--json` output."""
        return {
            "failed": self.failed,
            "trials": self.trials,
            "rate": self.rate,
            "low": self.low,
            "high": self.high,
        }


def wilson(failed: int, trials: int, confidence: float = CONFIDENCE) -> Rate:
    """Rate with Wilson's score interval, for a number of trials that was fixed beforehand.

    Source: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209; recommended for all n by Brown, Cai and
    DasGupta, Statist. Sci. 16 (2001) 101.

    Raises:
        ValueError: unless 0 <= failed <= trials and 0 < confidence < 1.
    """
    _check(failed, trials, confidence)
    if trials == 0:
        return _rate(failed, trials, 0.0, 1.0, confidence, Method.WILSON)
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    share = failed / trials
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    spread = math.sqrt(z2 * (share * (1 - share) + z2 / (4 * trials)) / trials) / (1 + z2 / trials)
    return _rate(failed, trials, middle - spread, middle + spread, confidence, Method.WILSON)


def exact(failed: int, trials: int, confidence: float = CONFIDENCE) -> Rate:
    """Rate with Clopper and Pearson's interval, for a number of trials that was fixed beforehand.

    Never holds the rate less often than stated, whatever the rate. After no failure in n trials its upper
    end is 1 - ((1 - confidence) / 2)^(1/n). Source: Biometrika 26 (1934) 404.

    Raises:
        ValueError: unless 0 <= failed <= trials and 0 < confidence < 1.
    """
    _check(failed, trials, confidence)
    tail, share = (1 - confidence) / 2, failed / trials if trials else 0.5
    passed = trials - failed
    low, high = 0.0, 1.0
    if failed:
        low = crossing(lambda p: beta_cdf(p, failed, passed + 1) > tail, share, 0.0)
    if passed:
        high = crossing(lambda p: 1 - beta_cdf(p, failed + 1, passed) > tail, share, 1.0)
    return _rate(failed, trials, low, high, confidence, Method.EXACT)


def anytime(failed: int, trials: int, confidence: float = CONFIDENCE) -> Rate:
    """Rate with a confidence sequence: valid however often one looks and whenever one stops.

    For the true rate p the ratio M = B(f + 1/2, s + 1/2) / B(1/2, 1/2) / (p^f (1-p)^s) of the mixture of
    all rates (Jeffreys' prior) to p itself is a martingale that begins at 1; by Ville's inequality it ever
    reaches 1/alpha with probability alpha at most. The interval holds each p with M < 1/alpha.
    Source: H. Robbins, Ann. Math. Stat. 41 (1970) 1397, after J. Ville (1939).

    Raises:
        ValueError: unless 0 <= failed <= trials and 0 < confidence < 1.
    """
    _check(failed, trials, confidence)
    passed = trials - failed
    limit = log_mixture(failed, passed) + math.log(1 - confidence)

    def holds(p: float) -> bool:
        return _log_likelihood(failed, passed, p) > limit

    share = failed / trials if trials else 0.5
    low = crossing(holds, share, 0.0) if failed else 0.0
    high = crossing(holds, share, 1.0) if passed else 1.0
    return _rate(failed, trials, low, high, confidence, Method.ANYTIME)


def log_mixture(failed: int, passed: int) -> float:
    """Logarithm of the probability of one order of outcomes, averaged over rates by Jeffreys' prior."""
    return log_beta(failed + 0.5, passed + 0.5) - log_beta(0.5, 0.5)


def _log_likelihood(failed: int, passed: int, p: float) -> float:
    """f ln p + s ln(1 - p), with 0 ln 0 = 0."""
    if (failed and p <= 0.0) or (passed and p >= 1.0):
        return -math.inf
    return (failed * math.log(p) if failed else 0.0) + (passed * math.log1p(-p) if passed else 0.0)


def _check(failed: int, trials: int, confidence: float) -> None:
    if not 0 <= failed <= trials:
        raise ValueError(f"{failed} failures in {trials} trials")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence {confidence} is not between 0 and 1")


def _rate(failed: int, trials: int, low: float, high: float, confidence: float, method: Method) -> Rate:
    share = failed / trials if trials else None
    low = 0.0 if failed == 0 else max(low, 0.0)  # rounding must not put the observed rate outside
    high = 1.0 if failed == trials else min(high, 1.0)
    return Rate(failed, trials, share, low, high, confidence, method)
