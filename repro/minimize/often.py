"""Whether a case fails as often as another one, whose own rate is only measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, fsum, log, log1p, sqrt

_POINTS = 81
_WIDTH = 5.0
"""Standard deviations of the first rate's log odds to either side that are summed over."""


@dataclass(frozen=True, kw_only=True)
class AsOften:
    """A sequential test of a case's rate: all of the first case's, or no more than a share of it.

    Wald's (Sequential Tests of Statistical Hypotheses, 1945) for known rates. The first case's rate is known
    from its own trials alone, so that both likelihoods are averages over what it may be (a beta distribution,
    from Jeffreys' prior): held against one estimated rate, one case in five that fails as often is taken to
    fail less.

    Args:
        failed: trials of the first case that failed.
        passed: trials of it that passed.
        share: of its rate.
        error: chance of a wrong answer, either way, in the mean over what the first rate may be.

    Raises:
        ValueError: unless 0 < share < 1, 0 < error < 0.5, and at least one trial failed.
    """

    failed: int
    passed: int
    share: float
    error: float

    def __post_init__(self) -> None:
        if not (0.0 < self.share < 1.0 and 0.0 < self.error < 0.5 and self.failed > 0 <= self.passed):
            raise ValueError(f"no test of a rate: {self}")

    @property
    def least(self) -> float:
        """The share of the first rate, as measured."""
        return self.share * self.failed / (self.failed + self.passed)

    def decide(self, failed: int, passed: int) -> bool | None:
        """Whether a case with these trials fails as often; None where more are needed."""
        odds = self.log_odds(failed, passed)
        bound = log((1.0 - self.error) / self.error)
        return True if odds >= bound else False if odds <= -bound else None

    def log_odds(self, failed: int, passed: int) -> float:
        """Logarithm of how much likelier these trials are at the whole rate than at the share of it."""
        whole = [weight + _likelihood(rate, failed, passed) for rate, weight in self._rates]
        part = [weight + _likelihood(self.share * rate, failed, passed) for rate, weight in self._rates]
        return _log_sum(whole) - _log_sum(part)

    @cached_property
    def _rates(self) -> list[tuple[float, float]]:
        """What the first rate may be, evenly by its log odds, each with the logarithm of its weight."""
        a, b = self.failed + 0.5, self.passed + 0.5
        middle, deviation = log(a / b), sqrt(1 / a + 1 / b)
        steps = (_WIDTH * (2 * place / (_POINTS - 1) - 1) for place in range(_POINTS))
        rates = [1 / (1 + exp(-middle - deviation * step)) for step in steps]
        return [(rate, a * log(rate) + b * log1p(-rate)) for rate in rates]


def _likelihood(rate: float, failed: int, passed: int) -> float:
    return failed * log(rate) + passed * log1p(-rate)


def _log_sum(logs: Sequence[float]) -> float:
    largest = max(logs)
    return largest + log(fsum(exp(one - largest) for one in logs))
