"""Which candidate the change is at, given all counts so far.

Only tested candidates carry information, so the posterior lives on *slots*: slot j holds the change points
between the (j-1)-th and the j-th tested candidate, all of which explain the data equally well. A search over
5,000 candidates of which 40 were tested costs 41 slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import erf, exp, inf, log, log1p, sqrt

from repro.search.prior import BetaPart, Evidence, RatePrior


@dataclass(frozen=True, eq=False)
class Model:
    """The prior of the whole question.

    Args:
        before, after: priors of the rate on either side of a change.
        steady: prior of the rate where nothing changes and the test does fail, and of the rate between two
            changes.
        change: prior probability that the rate changes at all.
        absent: prior probability that the test never fails anywhere; the rest is "throughout".
        rise: prior probability that a change is a rise.
    """

    before: RatePrior
    after: RatePrior
    steady: RatePrior
    change: float = 0.6
    absent: float = 0.15
    rise: float = 0.9

    def reversed(self) -> Model:
        """The same question asked with the order of candidates turned round."""
        return Model(self.after, self.before, self.steady, self.change, self.absent, 1.0 - self.rise)


_NOISY = (BetaPart(0.5, 1.0, 1.0), BetaPart(0.5, 1.0, 8.0))
"""A rate strictly between 0 and 1: anything, or a flaky test's few per cent."""


def _prior(zero: float, one: float) -> RatePrior:
    rest = 1.0 - zero - one
    return RatePrior(zero, one, tuple(BetaPart(rest * part.weight, part.a, part.b) for part in _NOISY))


DEFAULT_MODEL = Model(_prior(0.25, 0.02), _prior(0.05, 0.02), _prior(0.0, 0.05))
"""What guides the search: that a failure was never there before is likely, and so is a low rate."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The change points between two neighbours among the tested candidates.

    Attributes:
        low, high: the change is one of low + 1 ... high (`high` is the first candidate after it).
        mass: posterior probability that the change is here.
        before, after: what the trials on either side say of the rates, if the change is here.
    """

    low: int
    high: int
    mass: float
    before: Evidence
    after: Evidence

    @property
    def width(self) -> int:
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class Posterior:
    """Probabilities of every hypothesis; they sum to 1.

    Attributes:
        slots: in candidate order; together they hold all change points.
        throughout: probability of one rate above 0 everywhere.
        absent: probability of no failures anywhere.
        steady: what all trials together say of the rate under "throughout".
    """

    slots: tuple[Slot, ...]
    throughout: float
    absent: float
    steady: Evidence

    @property
    def change(self) -> float:
        """Probability that the rate changes somewhere."""
        return sum(slot.mass for slot in self.slots)


def posterior(counts: Mapping[int, tuple[int, int]], candidates: int, model: Model) -> Posterior:
    """The posterior, from (failed, passed) of each tested candidate.

    Time and memory are proportional to the number of tested candidates.
    """
    tested = sorted(counts)
    bounds = _bounds(tested, candidates)
    sides = list(_sides(model, [counts[index] for index in tested]))
    share = log(model.change / (candidates - 1)) if candidates > 1 else -inf
    logs = [
        share + log(high - low) + _log_change(model, before, after) if high > low else -inf
        for (low, high), (before, after) in zip(bounds, sides, strict=True)
    ]
    failed = sum(count[0] for count in counts.values())
    passed = sum(count[1] for count in counts.values())
    steady = model.steady.evidence(failed, passed)
    throughout = log(1.0 - model.change - model.absent) + steady.log_marginal
    absent = log(model.absent) if failed == 0 else -inf
    masses = _normalized([*logs, throughout, absent])
    slots = tuple(
        Slot(low, high, mass, before, after)
        for (low, high), mass, (before, after) in zip(bounds, masses[:-2], sides, strict=True)
    )
    return Posterior(slots, masses[-2], masses[-1], steady)


def _bounds(tested: Sequence[int], candidates: int) -> list[tuple[int, int]]:
    # A change point is the first candidate after the change: 1 ... candidates - 1. A slot may be empty.
    edges = [0, *tested, candidates - 1]
    return list(pairwise(edges))


def _sides(model: Model, counts: Sequence[tuple[int, int]]) -> list[tuple[Evidence, Evidence]]:
    failed = [0, *accumulate(count[0] for count in counts)]
    passed = [0, *accumulate(count[1] for count in counts)]
    return [
        (model.before.evidence(f, s), model.after.evidence(failed[-1] - f, passed[-1] - s))
        for f, s in zip(failed, passed, strict=True)
    ]


def _log_change(model: Model, before: Evidence, after: Evidence) -> float:
    # Both rates 0, or both 1, would be no change: those pairs are left out, and the rest scaled up.
    kept = 1.0 - model.before.zero * model.after.zero - model.before.one * model.after.one
    same = before.zero * after.zero + before.one * after.one
    if same >= 1.0:
        return -inf
    both = before.log_marginal + after.log_marginal + log1p(-same) - log(kept)
    return both + log(distinctness(before, after)) + log(_direction(model.rise, before, after))


def distinctness(before: Evidence, after: Evidence) -> float:
    """Prior weight, in (0, 1], of two rates by how far they are apart.

    A prior that allows equal rates on both sides can hardly ever be refuted: the evidence for "no change"
    grows with the square root of the trials only. One that vanishes where the rates are equal makes it grow
    with their 3/2 power (non-local priors: Johnson and Rossell 2010). With d the difference of the rates and
    s = (p + q)(2 - p - q), the weight is
    d^2 / (d^2 + s^2 / 10), taken at the posterior means of d^2 and s: 0.7 at (0, 0.1), 0.4 at (0.1, 0.3).
    """
    total = before.mean + after.mean
    apart = max(before.square + after.square - 2.0 * before.mean * after.mean, 1e-300)
    return apart / (apart + (total * (2.0 - total)) ** 2 / 10.0)


def _direction(rise: float, before: Evidence, after: Evidence) -> float:
    # The chance that the rate after is the higher one, by the normal approximation.
    spread = before.square - before.mean**2 + after.square - after.mean**2
    higher = 0.5 * (1.0 + erf((after.mean - before.mean) / sqrt(max(2.0 * spread, 1e-300))))
    return 2.0 * (rise * higher + (1.0 - rise) * (1.0 - higher))


def _normalized(logs: Sequence[float]) -> list[float]:
    top = max(logs)
    weights = [exp(value - top) for value in logs]
    total = sum(weights)
    return [weight / total for weight in weights]
