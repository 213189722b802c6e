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
class StoppingRule:
    """When to stop.

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


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Go on or stop, why, and the rate as it may be reported now.

    Args:
        more: trials that may still be run under the rule; 0 to stop.
    """

    go_on: bool
    reason: Reason
    rate: Rate
    more: int


def decide(rule: StoppingRule, *, failed: int, passed: int, others: int = 0) -> Decision:
    """Whether more trials are wanted.

    The rate's interval is Wilson's where the rule fixes the number of trials beforehand, and one that
    allows for stopping early where it does not, even if in the end all trials ran.

    Args:
        others: trials with an outcome that enters no failure rate.
    """
    trials = failed + passed
    interval = wilson if rule.half_width is None else anytime
    rate = interval(failed, trials, rule.confidence)
    left = max(rule.most - trials - others, 0)
    reason = _reason(rule, rate, left=left, others=others)
    go_on = reason in (Reason.TOO_FEW, Reason.WIDE)
    return Decision(go_on=go_on, reason=reason, rate=rate, more=left if go_on else 0)


def _reason(rule: StoppingRule, rate: Rate, *, left: int, others: int) -> Reason:
    if left == 0:
        return Reason.ALL_RUN
    if rate.trials == 0 and others >= rule.hopeless:
        return Reason.HOPELESS
    if rule.half_width is None or rate.trials < rule.least:
        return Reason.TOO_FEW
    if rate.interval.half_width <= rule.half_width:
        return Reason.NARROW
    return Reason.WIDE


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
