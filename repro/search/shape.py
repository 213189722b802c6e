"""Is it one step? A check of the search's own assumption, made before a name is stated.

The search looks for one change between two constant rates. Where the rate climbs over many candidates, or in
two steps, a one-step posterior still ends up certain of something. So the one-step account is weighed against
all accounts with two changes and a rate of its own between them, by their marginal likelihoods. A boundary
that is a change point in nearly all accounts of either sort may be named; else the answer is the range from
the first change to the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, log

from repro.search.posterior import Model, Slot

Counts = Mapping[int, tuple[int, int]]

_TWO_CHANGES = 0.1
"""Prior odds of two changes to one."""
_SLOTS = 48
"""Slots weighed against each other at most, since the cost grows with the square."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the accounts with one and with two changes say together.

    Attributes:
        two: probability that there are two changes, or more, given at least one.
        named: probability that the boundary under check is a change point.
        low, high: with two changes, the first is after `low` and the last not after `high`, with the
            confidence asked for.
    """

    two: float
    named: float
    low: int
    high: int

    @property
    def several(self) -> bool:
        """Several changes for all practical purposes, and the boundary under check is none of them."""
        return self.two >= 0.9 and self.named < 0.5


def weigh(slots: Sequence[Slot], counts: Counts, model: Model, suspect: Slot, confidence: float) -> Shape:
    """Weigh one change against two, for the boundary `suspect` among the posterior's `slots`."""
    places = _places(slots, suspect)
    failed, passed = _running(slots, counts)
    width = sum(slot.width for slot in slots)
    ones: list[tuple[int, float]] = []
    twos: list[tuple[int, int, float]] = []
    for position, j in enumerate(places):
        first = slots[j]
        share = log(first.width / width)
        ones.append((j, share + first.before.log_marginal + first.after.log_marginal))
        for k in places[position + 1 :]:
            middle = model.steady.evidence(failed[k] - failed[j], passed[k] - passed[j]).log_marginal
            weight = share + log(2.0 * _TWO_CHANGES * slots[k].width / width)
            weight += first.before.log_marginal + middle + slots[k].after.log_marginal
            twos.append((j, k, weight))
    return _summary(slots, ones, twos, slots.index(suspect), confidence)


def _places(slots: Sequence[Slot], suspect: Slot) -> list[int]:
    usable = [j for j, slot in enumerate(slots) if slot.width > 0]
    if len(usable) <= _SLOTS:
        return usable
    # The likeliest, and a spread over the rest: a second change is where a one-step posterior has no mass.
    likeliest = sorted(usable, key=lambda j: -slots[j].mass)[: _SLOTS // 2]
    spread = usable[:: -(-2 * len(usable) // _SLOTS)]
    return sorted({*likeliest, *spread, usable[-1], slots.index(suspect)})


def _running(slots: Sequence[Slot], counts: Counts) -> tuple[list[int], list[int]]:
    tested = [counts[index] for index in sorted(counts)]
    failed = [0, *accumulate(count[0] for count in tested)]
    return failed, [0, *accumulate(count[1] for count in tested)]


def _summary(
    slots: Sequence[Slot],
    ones: Sequence[tuple[int, float]],
    twos: Sequence[tuple[int, int, float]],
    suspect: int,
    confidence: float,
) -> Shape:
    top = max([one[-1] for one in ones] + [two[-1] for two in twos])
    single = {j: exp(weight - top) for j, weight in ones}
    pairs = [(j, k, exp(weight - top)) for j, k, weight in twos]
    double = sum(weight for _, _, weight in pairs)
    total = sum(single.values()) + double
    named = single.get(suspect, 0.0) + sum(weight for j, k, weight in pairs if suspect in (j, k))
    tail = (1.0 - confidence) / 2.0 * double
    low = slots[_quantile(((j, weight) for j, _, weight in pairs), tail)].low if pairs else 0
    high = slots[_quantile(((-k, weight) for _, k, weight in pairs), tail, -1)].high if pairs else 0
    return Shape(double / total, named / total, low, high)


def _quantile(weights: Iterable[tuple[int, float]], tail: float, sign: int = 1) -> int:
    ordered = sorted(weights)
    mass, chosen = 0.0, ordered[0][0]
    for place, weight in ordered:
        mass += weight
        chosen = place
        if mass > tail:
            break
    return sign * chosen
