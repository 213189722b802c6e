"""Failure rates with intervals that hold although the search decides when to stop.

The interval is a confidence sequence: with L(p) the likelihood of the trials at rate p and M their marginal
likelihood under a Beta(1/2, 1/2) prior, M / L(p) is a martingale that starts at 1 if p is the true rate. By
Ville's inequality it ever exceeds 1 / alpha with probability at most alpha (Robbins 1970),
so the rates for which it has not are the interval, at whatever moment one looks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

from repro.search.prior import log_beta


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """A failure rate, from `failed` failures in `trials` trials, and its interval [low, high].

    `rate` is the plain fraction, and None before the first trial.
    """

    failed: int
    trials: int
    rate: float | None
    low: float
    high: float


def estimate_rate(failed: int, passed: int, confidence: float = 0.95) -> RateEstimate:
    """The rate and an interval that holds with `confidence`, however the number of trials was chosen.

    Raises:
        ValueError: a negative count, or a confidence outside (0, 1).
    """
    if failed < 0 or passed < 0:
        raise ValueError(f"counts must not be negative: failed={failed}, passed={passed}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence}")
    trials = failed + passed
    if trials == 0:
        return RateEstimate(0, 0, None, 0.0, 1.0)
    rate = failed / trials
    floor = log(1.0 - confidence) + log_beta(failed + 0.5, passed + 0.5) - log_beta(0.5, 0.5)

    def possible(p: float) -> bool:
        return _log_likelihood(failed, passed, p) >= floor

    low = 0.0 if failed == 0 else _edge(possible, 0.0, rate)
    high = 1.0 if passed == 0 else _edge(possible, 1.0, rate)
    return RateEstimate(failed, trials, rate, low, high)


def _log_likelihood(failed: int, passed: int, p: float) -> float:
    if (p <= 0.0 and failed) or (p >= 1.0 and passed):
        return float("-inf")
    return (failed * log(p) if failed else 0.0) + (passed * log(1.0 - p) if passed else 0.0)


def _edge(possible: Callable[[float], bool], outside: float, inside: float) -> float:
    for _ in range(50):
        middle = (outside + inside) / 2.0
        outside, inside = (outside, middle) if possible(middle) else (middle, inside)
    return outside
