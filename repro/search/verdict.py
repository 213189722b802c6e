"""What the trials mean: a name, a range, no change, or not enough to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from repro.search.posterior import Posterior, Slot
from repro.search.rates import RateEstimate, estimate_rate
from repro.search.shape import Shape

Kind = Literal["appears", "rises", "falls", "throughout", "absent", "inconclusive"]
Counts = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Weighed:
    """A suspected boundary and what the checks say of it.

    Attributes:
        slot: the boundary.
        confirmed: fresh trials of both sides bear it out.
        shape: one change weighed against two.
    """

    slot: Slot
    confirmed: bool
    shape: Shape


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a search; candidate numbers are indices, 0 the oldest.

    Attributes:
        kind: `appears` (no failure was ever seen before it), `rises`, `falls`, `throughout` (one rate
            everywhere), `absent` (no failure anywhere), or `inconclusive`.
        first_bad: the first candidate after the change; None unless the asked confidence was reached, its
            predecessor could be tested and fresh trials confirmed both.
        low, high: the change is after `low` and not after `high`; None where the kind says there is none.
        confidence: probability of the range (or of there being no change). Never more than was asked for: how
            far beyond that a posterior goes depends on its prior, not on the trials.
        rate_before: the rate up to `low`; where nothing changes, that of all trials.
        rate_after: the rate from `high` on; where nothing changes, that of all trials.
    """

    kind: Kind
    first_bad: int | None
    low: int | None
    high: int | None
    confidence: float
    rate_before: RateEstimate
    rate_after: RateEstimate


def judge(belief: Posterior, counts: Counts, confidence: float, boundary: Weighed | None) -> Verdict:
    """The verdict at this moment.

    Args:
        belief: the posterior.
        counts: (failed, passed) of each tested candidate.
        confidence: the probability asked for.
        boundary: the suspected boundary, if there is one.
    """
    if belief.throughout >= confidence:
        return _steady("throughout", belief.throughout, counts, confidence)
    if belief.absent >= confidence:
        return _steady("absent", belief.absent, counts, confidence)
    low, high, mass = shortest_range(belief, confidence)
    stands = boundary is not None and _stands(boundary, confidence)
    if boundary is not None and stands:
        low, high, mass = boundary.slot.low, boundary.slot.high, boundary.slot.mass
    elif boundary is not None and boundary.shape.several:
        low, high = min(low, boundary.shape.low), max(high, boundary.shape.high)
    before = estimate_rate(*_pooled(counts, 0, low), confidence)
    after = estimate_rate(*_pooled(counts, high, max(counts, default=high)), confidence)
    kind = _direction(belief, before, confidence)
    named = stands and high == low + 1 and kind != "inconclusive"
    return Verdict(kind, high if named else None, low, high, min(mass, confidence), before, after)


def _stands(boundary: Weighed, confidence: float) -> bool:
    sure = min(boundary.slot.mass, boundary.shape.named) >= confidence
    return boundary.confirmed and sure


def shortest_range(belief: Posterior, confidence: float) -> tuple[int, int, float]:
    """(low, high, mass): the shortest range of change points that holds `confidence`, or all of them."""
    slots = belief.slots
    best = (slots[0].low, slots[-1].high, belief.change)
    first, mass = 0, 0.0
    for slot in slots:
        mass += slot.mass
        while mass - slots[first].mass >= confidence:
            mass -= slots[first].mass
            first += 1
        if mass >= confidence and slot.high - slots[first].low < best[1] - best[0]:
            best = (slots[first].low, slot.high, mass)
    return best


def _steady(kind: Kind, mass: float, counts: Counts, confidence: float) -> Verdict:
    rate = estimate_rate(*_pooled(counts, 0, max(counts)), confidence)
    return Verdict(kind, None, None, None, min(mass, confidence), rate, rate)


def _direction(belief: Posterior, before: RateEstimate, confidence: float) -> Kind:
    rising = sum(slot.mass for slot in belief.slots if slot.after.mean > slot.before.mean)
    if rising >= confidence:
        return "appears" if before.trials and before.failed == 0 else "rises"
    return "falls" if belief.change - rising >= confidence else "inconclusive"


def _pooled(counts: Counts, first: int, last: int) -> tuple[int, int]:
    inside = [count for index, count in counts.items() if first <= index <= last]
    return sum(count[0] for count in inside), sum(count[1] for count in inside)
