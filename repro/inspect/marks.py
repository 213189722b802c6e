"""The steps of a probe that a reader should look at first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from repro.inspect.records import Step

CANCELLING = 1e3
"""Ratio of input to output from which a subtraction is said to cancel."""
GROWING = 10.0
"""Growth of one step from which it is worth a mark."""
INEXACT = 1e3
"""Error in units of the last place from which a step is said to be inexact."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A step that stands out, and for what, in a few words."""

    step: Step
    what: str


def marks(steps: Sequence[Step]) -> list[Mark]:
    """What stands out: the first NaN and Inf, the largest error, cancellation, growth and magnitude."""
    found = [
        _first(steps, lambda step: step.nan > 0, "first NaN"),
        _first(steps, lambda step: step.inf > 0, "first Inf"),
        _first(steps, lambda step: step.subnormal > 0, "first subnormal"),
        _most(steps, lambda step: step.error.max_ulp if step.error else None, INEXACT, "largest error"),
        _most(steps, lambda step: step.cancellation, CANCELLING, "strongest cancellation"),
        _most(steps, lambda step: step.growth, GROWING, "largest growth"),
        _most(steps, lambda step: step.largest, 0.0, "largest magnitude"),
    ]
    return [mark for mark in found if mark is not None]


def _first(steps: Sequence[Step], fits: Callable[[Step], bool], what: str) -> Mark | None:
    step = next((step for step in steps if fits(step)), None)
    return None if step is None else Mark(step=step, what=what)


def _most(
    steps: Sequence[Step], value: Callable[[Step], float | None], least: float, what: str
) -> Mark | None:
    """The first step with the largest value above `least`."""
    best: tuple[float, Step] | None = None
    for step in steps:
        number = value(step)
        if number is not None and number > least and (best is None or number > best[0]):
            best = (number, step)
    return None if best is None else Mark(step=best[1], what=what)
