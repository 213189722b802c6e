"""One commit, good or bad: what `git bisect run` wants to know, with a stated chance of error.

Wald's sequential probability ratio test between two failure rates (A. Wald, Sequential Tests of Statistical
Hypotheses, 1945): trials go on until they are (1 - e) / e times likelier under one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import inf, log, log1p

from repro.bisect.tryout import Counts, Tryout


class Answer(IntEnum):
    """Exit codes that `git bisect run` understands."""

    GOOD = 0
    BAD = 1
    SKIP = 125
    ABORT = 128


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What tells a good commit from a bad one.

    Args:
        good: failure rate of good commits, often 0.
        bad: failure rate of bad ones.
        error: chance of a wrong answer, either way.

    Raises:
        ValueError: unless 0 <= good < bad <= 1 and 0 < error < 0.5.
    """

    good: float
    bad: float
    error: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.good < self.bad <= 1.0:
            raise ValueError(
                f"a bad commit must fail more often than a good one: {self.bad:g}, {self.good:g}"
            )
        if not 0.0 < self.error < 0.5:
            raise ValueError(f"the chance of error must lie between 0 and 0.5, not {self.error:g}")

    def decide(self, failed: int, passed: int) -> Answer | None:
        """Good or bad, or None where more trials are needed."""
        ratio = _times(failed, _log(self.bad) - _log(self.good))
        ratio += _times(passed, _log1p(-self.bad) - _log1p(-self.good))
        bound = log((1.0 - self.error) / self.error)
        return Answer.BAD if ratio >= bound else Answer.GOOD if ratio <= -bound else None


def _log(value: float) -> float:
    return log(value) if value > 0.0 else -inf


def _log1p(value: float) -> float:
    return log1p(value) if value > -1.0 else -inf


def _times(number: int, value: float) -> float:
    return number * value if number else 0.0


def check(tryout: Tryout, rates: Rates, *, most: int, batch: int = 20) -> tuple[Answer | None, Counts]:
    """Try the one candidate of a line until it is clear what it is; None after `most` trials.

    Raises:
        Untestable: it has no such test, does not build, or fails otherwise.
        Interrupted, NotReadyError: as `Runner.run`.
    """
    counts = tryout.known(0)
    while (answer := rates.decide(counts.failed, counts.passed)) is None and counts.rated < most:
        counts += tryout.rate(0, min(batch, most - counts.rated))
    return answer, counts
