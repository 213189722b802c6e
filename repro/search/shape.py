"""Is it one step? A check of the search's own assumption, made before a name is stated.

The search looks for one change between two constant rates. Where the rate climbs over many candidates, or in
two steps, a one-step posterior still ends up certain of something. So the one-step account is weighed against
others by their marginal likelihoods: two changes with a rate of its own between them, and straight slopes of
several widths around the boundary. A boundary that is a change point in nearly all accounts may be named;
else the answer is the range from where the rate begins to change to where it ends.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import exp, log
from typing import NamedTuple

from repro.search.posterior import Model, Slot

Counts = Mapping[int, tuple[int, int]]

_TWO_CHANGES = 0.1
_SLOPES = 0.05
"""Prior odds of either account to that of one step."""
_WARY = log(10.0)
"""By how much a name holds slopes for likelier than that."""
_WIDTH = 8
"""The narrowest slope that is weighed: candidates from its beginning to its end."""
_SEVERAL = 0.75
"""From this probability of more than one step on, the search ends with a range."""
_SLOTS = 32
"""Slots weighed against each other at most, since the cost grows with the square."""
_SHIFTS = (-3, -2, -1, 0, 1, 2, 3)
"""Eighths of its width by which a slope's middle may lie off the boundary."""


class Account(NamedTuple):
    """One way in which the rate may change: from after `low` on, until `high`.

    Attributes:
        low, high: the last candidate before the change begins, and the first at which it is complete.
        log_weight: natural logarithm of prior times marginal likelihood.
        named: the boundary under check is a change point of it.
        before, after: the rates up to `low` and from `high` on.
        middle: the rate between them; None for a straight line.
    """

    low: int
    high: int
    log_weight: float
    named: bool
    before: float
    after: float
    middle: float | None = None

    def rate(self, index: int) -> float:
        """The failure rate of a candidate in this account."""
        if index <= self.low or index >= self.high:
            return self.before if index <= self.low else self.after
        if self.middle is not None:
            return self.middle
        return self.before + (self.after - self.before) * (index - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Shape:
    """What all accounts say together.

    Attributes:
        more: probability that it is not one step.
        named: probability that the boundary under check is a change point.
        low, high: where it is not one step, the rate begins to change after `low` and has changed by
            `high`, with the confidence asked for.
    """

    more: float
    named: float
    low: int
    high: int
    accounts: Sequence[tuple[Account, float]] = field(default=(), repr=False)

    @property
    def several(self) -> bool:
        """Not one step for all practical purposes, and the boundary under check is no step of it."""
        return self.more >= _SEVERAL and self.named < 0.5


def weigh(slots: Sequence[Slot], counts: Counts, model: Model, suspect: Slot, confidence: float) -> Shape:
    """Weigh one step against the other accounts, for the boundary `suspect` among the posterior's `slots`."""
    places = _places(slots, suspect)
    if not places:
        return Shape(0.0, 0.0, 0, 0)
    width = sum(slot.width for slot in slots)
    ones = [_one(slots[j], width, slots[j] is suspect) for j in places]
    twos = list(_twos(slots, places, counts, model, suspect))
    slopes = list(_slopes(slots, counts, suspect, model))
    return _summary(ones, twos, slopes, slots[-1].high, confidence)


def _places(slots: Sequence[Slot], suspect: Slot) -> list[int]:
    usable = [j for j, slot in enumerate(slots) if slot.width > 0]
    if len(usable) <= _SLOTS:
        return usable
    # The likeliest, and a spread over the rest: a second change is where a one-step posterior has no mass.
    likeliest = sorted(usable, key=lambda j: -slots[j].mass)[: _SLOTS // 2]
    spread = usable[:: -(-2 * len(usable) // _SLOTS)]
    return sorted({*likeliest, *spread, usable[-1], slots.index(suspect)})


def _one(slot: Slot, width: int, named: bool) -> Account:
    weight = log(slot.width / width) + slot.before.log_marginal + slot.after.log_marginal
    return Account(slot.low, slot.high, weight, named, slot.before.mean, slot.after.mean)


def _twos(
    slots: Sequence[Slot], places: Sequence[int], counts: Counts, model: Model, suspect: Slot
) -> Iterator[Account]:
    tested = [counts[index] for index in sorted(counts)]
    failed = [0, *accumulate(count[0] for count in tested)]
    passed = [0, *accumulate(count[1] for count in tested)]
    width = sum(slot.width for slot in slots)
    for position, j in enumerate(places):
        first = slots[j]
        start = log(2.0 * _TWO_CHANGES * first.width / width) + first.before.log_marginal
        for k in places[position + 1 :]:
            last = slots[k]
            middle = model.steady.evidence(failed[k] - failed[j], passed[k] - passed[j])
            weight = start + log(last.width / width) + middle.log_marginal + last.after.log_marginal
            named = first is suspect or last is suspect
            yield Account(
                first.low, last.high, weight, named, first.before.mean, last.after.mean, middle.mean
            )


def _slopes(slots: Sequence[Slot], counts: Counts, suspect: Slot, model: Model) -> Iterator[Account]:
    """Slopes with their middle near the boundary: each by the trials outside it, then those on it.

    The trials outside give the marginal likelihood of both rates; those on the slope are predicted by a
    straight line between the rates that the trials outside suggest.
    """
    tested = sorted(counts)
    last = slots[-1].high
    widths = [_WIDTH * 2**k for k in range(max(1, (last + 1).bit_length() - _WIDTH.bit_length() + 1))]
    for width in widths:
        share = log(_SLOPES / len(widths)) + log(max(0.5, width / 8.0) / last)
        for middle in sorted({suspect.high + shift * width // 8 for shift in _SHIFTS}):
            low, high = middle - width // 2, middle - width // 2 + width
            first, beyond = bisect_right(tested, low), bisect_left(tested, high)
            before, after = slots[first].before, slots[beyond].after
            gain = sum(
                _on_slope(counts[i], (i - low) / width, before.mean, after.mean) for i in tested[first:beyond]
            )
            weight = share + before.log_marginal + after.log_marginal + gain
            yield Account(low, high, weight, False, before.mean, after.mean)


def _on_slope(count: tuple[int, int], part: float, before: float, after: float) -> float:
    rate = before + (after - before) * part
    # Never 0 or 1: a mean is neither unless every Beta component is gone, which no number of trials does.
    return count[0] * log(rate) + count[1] * log(1.0 - rate)


def _summary(
    ones: Sequence[Account], twos: Sequence[Account], slopes: Sequence[Account], last: int, confidence: float
) -> Shape:
    top = max(account.log_weight for account in (*ones, *twos, *slopes))
    weights = [(account, exp(account.log_weight - top)) for account in (*twos, *slopes)]
    rest = sum(weight for _, weight in weights)
    total = rest + sum(exp(account.log_weight - top) for account in ones)
    wary = [account._replace(log_weight=account.log_weight + _WARY) for account in slopes]
    accounts = (*ones, *twos, *wary)
    shares = _shares(accounts)
    named = sum(share for account, share in zip(accounts, shares, strict=True) if account.named)
    tail = (1.0 - confidence) / 2.0 * rest
    low = _quantile([(max(0, account.low), weight) for account, weight in weights], tail)
    high = -_quantile([(-min(last, account.high), weight) for account, weight in weights], tail)
    return Shape(rest / total, named, low, high, tuple(zip(accounts, shares, strict=True)))


def _shares(accounts: Sequence[Account]) -> list[float]:
    top = max(account.log_weight for account in accounts)
    weights = [exp(account.log_weight - top) for account in accounts]
    total = sum(weights)
    return [weight / total for weight in weights]


def _quantile(weights: Sequence[tuple[int, float]], tail: float) -> int:
    mass = 0.0
    for place, weight in sorted(weights):
        mass += weight
        if mass > tail:
            return place
    return max(weights, default=(0, 0.0))[0]
