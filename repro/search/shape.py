"""Is it one step? A check of the search's own assumption, made before a name is stated.

The search looks for one change between two constant rates. Where the rate climbs over many candidates, or in
two steps, a one-step posterior still ends up certain of something. So the one-step account is weighed against
others by their marginal likelihoods: two changes with a rate of its own between them, and straight slopes of
several widths around the boundary. A boundary that is a change point in nearly all accounts may be named;
else the answer is the range from where the rate begins to change to where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log

from repro.search.accounts import Account, Counts, one_step, slopes, two_steps
from repro.search.posterior import Model, Slot

_WARY = log(4.0)
"""A name holds slopes for this much likelier, in logarithms, than the end with a range does.

Either error is then rare: a step that few trials make look like a slope, and a slope taken for a step.
"""
_SEVERAL = 0.75
"""From this probability of more than one step on, the search ends with a range."""
_NEGLIGIBLE = 25.0
"""An account this much below the best step's, in logarithms, is left out."""
_SLOTS = 32
"""Slots weighed against each other at most, since the cost grows with the square."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What all accounts say together.

    Attributes:
        more: probability that it is not one step.
        named: probability that the boundary under check is a change point, with slopes held for likelier.
        low, high: where it is not one step, the rate begins to change after `low` and has changed by
            `high`, with the confidence asked for.
        accounts: what was weighed, each with its probability as in `named`.
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
    ones = [one_step(slots[j], width, slots[j] is suspect) for j in places]
    least = max(account.log_weight for account in ones) - _NEGLIGIBLE
    twos = list(two_steps(slots, places, counts, model, suspect, least))
    sloping = list(slopes(slots, counts, suspect, least))
    return _summary(ones, twos, sloping, slots[-1].high, confidence)


def _places(slots: Sequence[Slot], suspect: Slot) -> list[int]:
    usable = [j for j, slot in enumerate(slots) if slot.width > 0]
    if len(usable) <= _SLOTS:
        return usable
    # The likeliest, and a spread over the rest: a second change is where a one-step posterior has no mass.
    likeliest = sorted(usable, key=lambda j: -slots[j].mass)[: _SLOTS // 2]
    spread = usable[:: -(-2 * len(usable) // _SLOTS)]
    return sorted({*likeliest, *spread, usable[-1], slots.index(suspect)})


def _summary(
    ones: Sequence[Account], twos: Sequence[Account], sloping: Sequence[Account], last: int, confidence: float
) -> Shape:
    top = max(account.log_weight for account in (*ones, *twos, *sloping))
    weights = [(account, exp(account.log_weight - top)) for account in (*twos, *sloping)]
    rest = sum(weight for _, weight in weights)
    total = rest + sum(exp(account.log_weight - top) for account in ones)
    wary = [account._replace(log_weight=account.log_weight + _WARY) for account in sloping]
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
