"""The ways in which the rate may change around a boundary, each with its marginal likelihood."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import log
from typing import NamedTuple

from repro.search.posterior import Model, Slot

Counts = Mapping[int, tuple[int, int]]

_TWO_CHANGES = 0.1
_SLOPES = 0.05
"""Prior odds of either account to that of one step."""
_WIDTH = 8
"""The narrowest slope that is weighed: candidates from its beginning to its end."""
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


def one_step(slot: Slot, width: int, named: bool) -> Account:
    """The rate changes once, in `slot`, one of the slots of `width` candidates in all."""
    weight = log(slot.width / width) + slot.before.log_marginal + slot.after.log_marginal
    return Account(slot.low, slot.high, weight, named, slot.before.mean, slot.after.mean)


def two_steps(
    slots: Sequence[Slot], places: Sequence[int], counts: Counts, model: Model, suspect: Slot, least: float
) -> Iterator[Account]:
    """The rate changes in two of the slots at `places`, and has a value of its own between them.

    Accounts with a logarithmic weight below `least` are left out, here and in `slopes`.
    """
    tested = [counts[index] for index in sorted(counts)]
    failed = [0, *accumulate(count[0] for count in tested)]
    passed = [0, *accumulate(count[1] for count in tested)]
    width = sum(slot.width for slot in slots)
    ends = [log(slots[k].width / width) + slots[k].after.log_marginal for k in places]
    for position, j in enumerate(places):
        first = slots[j]
        start = log(2.0 * _TWO_CHANGES * first.width / width) + first.before.log_marginal
        for k, end in zip(places[position + 1 :], ends[position + 1 :], strict=True):
            if start + end < least:
                continue
            middle = model.steady.evidence(failed[k] - failed[j], passed[k] - passed[j])
            weight = start + middle.log_marginal + end
            if weight >= least:
                last = slots[k]
                named = first is suspect or last is suspect
                rates = (first.before.mean, last.after.mean, middle.mean)
                yield Account(first.low, last.high, weight, named, *rates)


def slopes(slots: Sequence[Slot], counts: Counts, suspect: Slot, least: float) -> Iterator[Account]:
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
            weight = share + before.log_marginal + after.log_marginal
            account = Account(low, high, weight, False, before.mean, after.mean)
            if weight >= least:
                weight += sum(_on_slope(counts[index], account.rate(index)) for index in tested[first:beyond])
                yield account._replace(log_weight=weight)


def _on_slope(count: tuple[int, int], rate: float) -> float:
    # Never 0 or 1: a mean is neither unless every Beta component is gone, which no number of trials does.
    failed, passed = count
    return (failed * log(rate) if failed else 0.0) + passed * log(1.0 - rate)
