"""Whether to go on: a pure decision from the outcomes so far. And how many clean runs a claim needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from repro.stats.rates import CONFIDENCE, Rate, anytime, wilson


class Reason(StrEnum):
    """Why trials go on or stop."""

    TOO_FEW = "too few trials yet"
    WIDE = "the interval is wider than wanted"
    ALL_RUN = "all trials have run"
    NARROW = "the interval is narrow enough"
    HOPELESS = "no trial passes or fails with the target signature"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Go on or stop, why, and the rate as it may be reported now.

    Args:
        more: trials that may still be run under the rule; 0 to stop.
    """

    stop: bool
    reason: Reason
    rate: Rate
    more: int

    @property
    def why(self) -> str:
        """The reason as a phrase for a table."""
        return self.reason.value


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """When to stop: a rule, and the rate as it may be reported under it.

    Args:
        most: trials at most; all outcomes count against it.
        least: trials that enter the rate, before the width is looked at.
        half_width: of the interval, as a probability; None to run all trials.
        confidence: of the interval.
        hopeless: trials with other outcomes, and none that enters the rate, before it is given up.
    """

    most: int
    least: int = 20
    half_width: float | None = None
    confidence: float = CONFIDENCE
    hopeless: int = 10

    def __post_init__(self) -> None:
        if self.most < 1 or self.least < 0 or self.hopeless < 1:
            raise ValueError(f"no sensible numbers of trials: {self}")
        if self.half_width is not None and not 0.0 < self.half_width < 1.0:
            raise ValueError(f"half width {self.half_width} is not between 0 and 1")

    def decide(self, *, failed: int, passed: int, others: int = 0) -> Decision:
        """Whether more trials are wanted.

        Args:
            others: trials with an outcome that enters no failure rate.
        """
        rate = self.rate(failed=failed, passed=passed)
        left = max(self.most - rate.trials - others, 0)
        reason = self._reason(rate, left=left, others=others)
        stop = reason not in (Reason.TOO_FEW, Reason.WIDE)
        return Decision(stop=stop, reason=reason, rate=rate, more=0 if stop else left)

    def rate(self, *, failed: int, passed: int) -> Rate:
        """The rate with the interval that this rule allows.

        Wilson's where the number of trials is fixed beforehand; one that allows for stopping early where it
        is not, even if in the end all trials ran.
        """
        interval = wilson if self.half_width is None else anytime
        return interval(failed, failed + passed, self.confidence)

    def _reason(self, rate: Rate, *, left: int, others: int) -> Reason:
        if left == 0:
            return Reason.ALL_RUN
        if rate.trials == 0 and others >= self.hopeless:
            return Reason.HOPELESS
        if self.half_width is None or rate.trials < self.least:
            return Reason.TOO_FEW
        return Reason.NARROW if rate.interval.half_width <= self.half_width else Reason.WIDE


def clean_runs_needed(rate: float, confidence: float = CONFIDENCE) -> int:
    """Passing trials in a row after which a failure rate of `rate` or more is ruled out.

    The smallest n with (1 - rate)^n <= 1 - confidence: at 95 % about 3 / rate, the "rule of three"
    (Hanley and Lippman-Hand, JAMA 249 (1983) 1743). For a claim such as "fixed", take as `rate` the lower
    end of the rate's interval before the fix.

    Raises:
        ValueError: unless both lie strictly between 0 and 1.
    """
    if not 0.0 < rate < 1.0 or not 0.0 < confidence < 1.0:
        raise ValueError(f"rate {rate} and confidence {confidence} must lie between 0 and 1")
    return math.ceil(math.log(1 - confidence) / math.log1p(-rate))


def rate_ruled_out(clean_runs: int, confidence: float = CONFIDENCE) -> float:
    """The failure rate that so many passing trials, fixed beforehand, rule out: this rate and all above.

    Raises:
        ValueError: for less than no runs, or a confidence that is not strictly between 0 and 1.
    """
    if clean_runs < 0 or not 0.0 < confidence < 1.0:
        raise ValueError(f"{clean_runs} runs, confidence {confidence}")
    return 1.0 if clean_runs == 0 else -math.expm1(math.log(1 - confidence) / clean_runs)
