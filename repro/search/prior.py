"""What is believed of a failure rate before the first trial, and the evidence that trials carry.

A rate's prior is a mixture of a point mass at 0 ("it never fails here"), a point mass at 1 ("it always
fails") and Beta distributions. Beta is conjugate to the Bernoulli trial, so the marginal likelihood of a
sequence with f failures and s passes has the closed form

    w0 [f = 0] + w1 [s = 0] + sum_k w_k B(a_k + f, b_k + s) / B(a_k, b_k)

(Gelman et al., Bayesian Data Analysis, 3rd edition, section 2.4, for one component).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, inf, lgamma, log
from typing import NamedTuple


class Evidence(NamedTuple):
    """What one side's counts say under its prior.

    Attributes:
        log_marginal: natural logarithm of the probability of the sequence of outcomes.
        zero: posterior weight of the rate being exactly 0.
        one: posterior weight of the rate being exactly 1.
        mean: posterior mean of the rate, which is the chance that the next trial fails.
        square: posterior mean of the rate's square.
    """

    log_marginal: float
    zero: float
    one: float
    mean: float
    square: float


@dataclass(frozen=True, slots=True)
class BetaPart:
    """One Beta(a, b) component and its weight."""

    weight: float
    a: float
    b: float


@dataclass(frozen=True, eq=False)
class RatePrior:
    """A mixture prior of one failure rate; the weights sum to 1. Compared, and cached, by identity.

    Args:
        zero: weight of the point mass at rate 0.
        one: weight of the point mass at rate 1.
        parts: the Beta components.
    """

    zero: float
    one: float
    parts: tuple[BetaPart, ...]

    def evidence(self, failed: int, passed: int) -> Evidence:
        """The marginal likelihood and the posterior summary of `failed` failures among the trials."""
        return _evidence(self, failed, passed)


@lru_cache(maxsize=1 << 16)
def _evidence(prior: RatePrior, failed: int, passed: int) -> Evidence:
    zero = prior.zero if failed == 0 else 0.0
    one = prior.one if passed == 0 else 0.0
    logs = [_log_beta_marginal(part, failed, passed) for part in prior.parts]
    # Point masses only count where all trials agree, and there no Beta part is small: 1 is a safe scale.
    top = max(logs) if zero == one == 0.0 else 0.0
    scaled = [exp(value - top) for value in logs]
    total = sum(scaled) + zero + one
    trials = failed + passed
    mean = square = one
    for weight, part in zip(scaled, prior.parts, strict=True):
        size = part.a + part.b + trials
        average = (part.a + failed) / size
        mean += weight * average
        square += weight * average * (part.a + failed + 1.0) / (size + 1.0)
    return Evidence(top + log(total), zero / total, one / total, mean / total, square / total)


def _log_beta_marginal(part: BetaPart, failed: int, passed: int) -> float:
    if part.weight == 0.0:
        return -inf
    return log(part.weight) + log_beta(part.a + failed, part.b + passed) - log_beta(part.a, part.b)


def log_beta(a: float, b: float) -> float:
    """Natural logarithm of the Beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)
