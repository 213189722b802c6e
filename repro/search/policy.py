"""Which candidate to try next: the most expected information per cost.

The information that one trial gives about the hypothesis (where the change is, or that there is none) is the
entropy of its outcome less the mean entropy given the hypothesis (Lindley 1956). Over n trials of one
candidate it grows concavely from that slope towards the entropy of the question the candidate can answer,
"before or after the change?", which `limit * (1 - exp(-n * slope / limit))` follows closely enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, exp, log

from repro.search.posterior import Posterior, Slot

_SPLITS = 8
"""An untested stretch is considered at its seven inner eighths."""
_BATCH_BITS = 0.04
"""A batch is as many trials as are expected to bring this much, but at most a 25th of those made."""
_NEGLIGIBLE = 1e-12
"""A change less likely than this adds nothing to what a trial tells."""
_LN2 = log(2.0)


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate to try, the number of trials, and the bits per cost expected of it."""

    index: int
    trials: int
    worth: float


@dataclass(frozen=True, slots=True)
class Question:
    """What the policy must know besides the posterior.

    Args:
        candidates: how many there are.
        tested: sorted candidates with at least one trial; they are built.
        skipped: candidates that cannot be tested.
        build_cost: cost of the first visit to a candidate, in trials.
        trials: trials made so far, which bounds the next batch.
    """

    candidates: int
    tested: Sequence[int]
    skipped: Set[int]
    build_cost: float
    trials: int


def choose(belief: Posterior, question: Question) -> Choice | None:
    """The best next candidate, or None where no candidate can be tested."""
    gains = _Gains(belief)
    best: Choice | None = None
    # The newest first, since that is where failures are looked for.
    for position in range(len(question.tested) - 1, -1, -1):
        index = question.tested[position]
        if index not in question.skipped:
            slope = gains.closing(position)
            if best is None or _exceeds(slope, best):
                best = Choice(index, _batch(slope, question.trials), slope)
    for position in range(len(belief.slots) - 1, -1, -1):
        if not gains.roomy(position):
            continue
        if best is not None and not _exceeds(gains.most(position), best):
            continue
        for index in _inside(belief.slots[position], position, question):
            choice = _untested(index, position, gains, question)
            if best is None or _exceeds(choice.worth, best):
                best = choice
    return best


def _exceeds(worth: float, best: Choice) -> bool:
    # By more than rounding, so that equals are decided by their order.
    return worth > best.worth * (1.0 + 1e-9)


def _untested(index: int, position: int, gains: _Gains, question: Question) -> Choice:
    worth = slope = gains.slope(index, position)
    if question.build_cost > 0.0:
        worth = worth_of(slope, gains.limit(index, position), question.build_cost)
    return Choice(index, _batch(slope, question.trials), worth * _testable_chance(index, question))


def _inside(slot: Slot, position: int, question: Question) -> Iterable[int]:
    first = position == 0
    last = position == len(question.tested)
    low = -1 if first else slot.low
    high = question.candidates if last else slot.high
    if high - low < 2:
        return ()
    wanted = {low + 1, high - 1} if high - low <= _SPLITS or first or last else set()
    wanted |= {low + max(1, (high - low) * eighth // _SPLITS) for eighth in range(1, _SPLITS)}
    found = (nearest(index, low, high, question.skipped) for index in wanted)
    return sorted({index for index in found if index is not None}, reverse=True)


def nearest(index: int, low: int, high: int, skipped: Set[int]) -> int | None:
    """The testable candidate nearest to `index` strictly between `low` and `high`."""
    for distance in range(high - low):
        for near in (index - distance, index + distance):
            if low < near < high and near not in skipped:
                return near
    return None


def _testable_chance(index: int, question: Question) -> float:
    # Untestable candidates come in clusters: beside one, the next is likely to be one as well.
    for distance in range(1, 12 if question.skipped else 1):
        if index - distance in question.skipped or index + distance in question.skipped:
            return 1.0 - 0.7 * 0.8**distance
    return 1.0


def worth_of(slope: float, limit: float, build: float) -> float:
    """Bits per cost of trials at a new candidate, at the best number of them."""
    trials, best = 1.0, 0.0
    while trials < 1e5:
        worth = _saturating(trials, slope, limit) / (build + trials)
        if worth < best:
            break
        best, trials = worth, trials * 1.3
    return best


def _saturating(trials: float, slope: float, limit: float) -> float:
    return limit * (1.0 - exp(-trials * slope / limit)) if limit > 0.0 else 0.0


def _batch(slope: float, trials: int) -> int:
    wanted = ceil(_BATCH_BITS / slope) if slope > 1e-6 else trials
    return max(1, min(wanted, 1 + trials // 25))


class _Gains:
    """Information of one trial at any candidate, in O(1) each after O(slots)."""

    def __init__(self, belief: Posterior) -> None:
        self._belief = belief
        slots = belief.slots
        self._mass = [0.0, *accumulate(slot.mass for slot in slots)]
        likely = [slot for slot in slots if slot.mass > _NEGLIGIBLE]
        fails = sum(slot.mass * slot.before.mean for slot in likely)
        noise = sum(slot.mass * entropy(slot.before.mean) for slot in likely)
        self._fails = [fails + belief.throughout * belief.steady.mean]
        self._noise = [noise + belief.throughout * entropy(belief.steady.mean)]
        for slot in slots:
            mass, before, after = slot.mass, slot.before.mean, slot.after.mean
            likelier = mass > _NEGLIGIBLE
            self._fails.append(self._fails[-1] + (mass * (after - before) if likelier else 0.0))
            gain = mass * (entropy(after) - entropy(before)) if likelier else 0.0
            self._noise.append(self._noise[-1] + gain)

    def closing(self, position: int) -> float:
        """Bits of one trial at the tested candidate that closes the slot `position`."""
        return max(0.0, entropy(self._fails[position + 1]) - self._noise[position + 1])

    def roomy(self, position: int) -> bool:
        """Whether the slot may have candidates inside: the first and the last may hold an end of all."""
        slots = self._belief.slots
        return position in (0, len(slots) - 1) or slots[position].high - slots[position].low > 1

    def slope(self, index: int, position: int) -> float:
        """Bits of one trial at a candidate that lies in the slot `position`."""
        part = self._part(index, position)
        fails = self._fails[position] + part * (self._fails[position + 1] - self._fails[position])
        noise = self._noise[position] + part * (self._noise[position + 1] - self._noise[position])
        return max(0.0, entropy(fails) - noise)

    def most(self, position: int) -> float:
        """Bits of one trial anywhere in the slot are no more than this."""
        one, other = self._fails[position], self._fails[position + 1]
        nearest_half = min(max(0.5, min(one, other)), max(one, other))
        return entropy(nearest_half) - min(self._noise[position], self._noise[position + 1])

    def limit(self, index: int, position: int) -> float:
        """Bits at most, of any number of trials there."""
        part = self._part(index, position)
        after = self._mass[position] + part * (self._mass[position + 1] - self._mass[position])
        belief = self._belief
        return _spread((after, self._mass[-1] - after, belief.throughout, belief.absent))

    def _part(self, index: int, position: int) -> float:
        slot = self._belief.slots[position]
        return min(1.0, max(0.0, (index - slot.low) / slot.width)) if slot.width > 0 else 1.0


def entropy(chance: float) -> float:
    """Entropy of one outcome with this chance, in bits."""
    if chance <= 0.0 or chance >= 1.0:
        return 0.0
    rest = 1.0 - chance
    return -(chance * log(chance) + rest * log(rest)) / _LN2


def _spread(chances: Iterable[float]) -> float:
    return -sum(chance * log(chance) for chance in chances if chance > 0.0) / _LN2
