"""The search itself: asking, observing and judging, with no clock, process or random number in it."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

from repro.search.boundary import Boundary
from repro.search.policy import Question, choose, nearest
from repro.search.posterior import DEFAULT_MODEL, Model, Posterior, Slot, posterior
from repro.search.shape import Shape, weigh
from repro.search.telling import telling
from repro.search.verdict import Verdict, Weighed, judge

_NOMINATE = 0.8
"""A boundary is checked from this probability on; the check's own trials bring the rest."""
_FRESH = 3
"""Fresh trials of either side, at least: one stray outcome is no confirmation."""
_NO_CHANGE = 0.7
"""From this probability of no change on, the ends are tried: nothing else can settle it."""
_WEIGH_EVERY = 6
"""Trials at least between two weighings of other shapes than one step."""
_WORTHLESS = 1e-9


@dataclass(frozen=True, slots=True)
class Ask:
    """Run `trials` trials of candidate `index` next."""

    index: int
    trials: int


class ChangePointSearch:
    """Find the candidate at which a failure rate changes, from noisy trials.

    Candidates are numbered from the oldest, 0, to the newest. Trials already known are observed first and
    cost nothing; they do not count as the fresh trials of a boundary's check, which begins when `propose`
    first suspects it. More or fewer trials than asked may be observed, of any candidate, in any order. The
    same calls in the same order give the same questions, so replaying them resumes a search exactly.

    Args:
        candidates: how many there are.
        confidence: probability with which a stated answer must hold.
        build_cost: cost of the first visit to a candidate, in trials; further ones of it cost a trial each.
        max_trials: ask for no more once this many trials were asked for and observed; None for no limit.
        model: the prior that guides the search; `DEFAULT_MODEL.reversed()` to look for a fix.

    Raises:
        ValueError: an argument out of range.
    """

    def __init__(
        self,
        candidates: int = 128,
        confidence: float = 0.95,
        build_cost: float = 0.0,
        *,
        max_trials: int | None = None,
        model: Model = DEFAULT_MODEL,
    ) -> None:
        if candidates < 1:
            raise ValueError(f"a search needs at least one candidate, not {candidates}")
        if not 0.5 <= confidence < 1.0:
            raise ValueError(f"confidence must be at least 0.5 and below 1, not {confidence}")
        if not build_cost >= 0.0:
            raise ValueError(f"build_cost must not be negative, and is {build_cost}")
        self._candidates = candidates
        self._confidence = confidence
        self._build_cost = build_cost
        self._max_trials = max_trials
        self._model = model
        self._counts: dict[int, tuple[int, int]] = {}
        self._tested: list[int] = []
        self._skipped: set[int] = set()
        self._asked = False
        self._own_trials = 0
        self._shape_at = 0
        self._boundaries: dict[tuple[int, int], Boundary] = {}
        self._cached: Posterior | None = None
        self._cached_shape: Shape | None = None

    @property
    def belief(self) -> Posterior:
        """The posterior that guides the search."""
        if self._cached is None:
            self._cached = posterior(self._counts, self._candidates, self._model)
        return self._cached

    def observe(self, index: int, *, failed: int, passed: int) -> None:
        """Count trials of a candidate.

        Raises:
            ValueError: no such candidate, or a negative count.
        """
        self._check(index)
        if failed < 0 or passed < 0:
            raise ValueError(f"counts must not be negative: failed={failed}, passed={passed}")
        if failed + passed == 0:
            return
        if index not in self._counts:
            insort(self._tested, index)
        before = self._counts.get(index, (0, 0))
        self._counts[index] = (before[0] + failed, before[1] + passed)
        self._own_trials += failed + passed if self._asked else 0
        self._cached = self._cached_shape = None
        for boundary in self._boundaries.values():
            boundary.observe(index, failed, passed)

    def skip(self, index: int) -> None:
        """Never ask for this candidate (again): it cannot be tested. Trials it already has still count.

        Raises:
            ValueError: no such candidate.
        """
        self._check(index)
        self._skipped.add(index)

    def propose(self) -> Ask | None:
        """What to run next, or None when the verdict is final or nothing that can be run would change it."""
        self._asked = True
        if self._max_trials is not None and self._own_trials >= self._max_trials:
            return None
        belief = self.belief
        steady = belief.throughout + belief.absent
        if max(belief.throughout, belief.absent) >= self._confidence:
            return None
        if steady >= _NO_CHANGE:
            return self._end() or self._best(belief)
        if self._shape_due() and self._shape().several:
            return None
        suspect = self._suspect()
        return self._best(belief) if suspect is None else self._check_boundary(suspect)

    def verdict(self) -> Verdict:
        """What the observations so far mean; may be asked for at any time."""
        return judge(self.belief, self._counts, self._confidence, self._weighed())

    def _check(self, index: int) -> None:
        if not 0 <= index < self._candidates:
            raise ValueError(f"no candidate {index}: they are 0 to {self._candidates - 1}")

    def _best(self, belief: Posterior) -> Ask | None:
        question = Question(self._candidates, self._tested, self._skipped, self._build_cost, self._own_trials)
        choice = choose(belief, question)
        if choice is None or choice.worth < _WORTHLESS:
            return None
        return Ask(choice.index, choice.trials)

    def _suspect(self) -> Slot | None:
        """The likeliest boundary, if it is likely enough and no candidate inside it is left to try."""
        slot = self._likeliest()
        if slot.mass < _NOMINATE or slot.low not in self._counts or slot.high not in self._counts:
            return None
        if {slot.low, slot.high} & self._skipped:
            return None
        inside = range(slot.low + 1, slot.high)
        return slot if all(index in self._skipped for index in inside) else None

    def _shape_due(self) -> bool:
        """Whether trials grew by a tenth, and some, since the last time: weighing costs more than asking."""
        if self._shape_at < self._own_trials < max(1.1 * self._shape_at, self._shape_at + _WEIGH_EVERY):
            return False
        self._shape_at = self._own_trials
        return True

    def _likeliest(self) -> Slot:
        return max(self.belief.slots, key=lambda slot: slot.mass)

    def _end(self) -> Ask | None:
        """The end with fewer trials: a change that hides beyond the other trials would show there."""
        ends = [
            nearest(0, -1, self._candidates, self._skipped),
            nearest(self._candidates - 1, -1, self._candidates, self._skipped),
        ]
        known = [(sum(self._counts.get(end, (0, 0))), -end) for end in ends if end is not None]
        return Ask(-min(known)[1], 1 + self._own_trials // 10) if known else None

    def _check_boundary(self, suspect: Slot) -> Ask | None:
        pair = (suspect.low, suspect.high)
        boundary = self._boundaries.setdefault(pair, Boundary(*pair, len(self._boundaries) + 1))
        if not self._confirmed(suspect):
            return self._fresh(boundary)
        if suspect.mass < self._confidence:
            return self._best(self.belief) or self._fresh(boundary)
        shape = self._shape()
        if shape.several or shape.named >= self._confidence:
            return None
        return self._telling(shape) or self._fresh(boundary)

    def _telling(self, shape: Shape) -> Ask | None:
        question = Question(self._candidates, self._tested, self._skipped, self._build_cost, self._own_trials)
        choice = telling(shape, question)
        if choice is None or choice.worth < _WORTHLESS:
            return None
        return Ask(choice.index, choice.trials)

    def _fresh(self, boundary: Boundary) -> Ask:
        support = boundary.support(self._counts, self._model)
        done = [(boundary.trials(index), index) for index in (boundary.low, boundary.high)]
        pairs = zip(done, (support.low, support.high), strict=True)
        lacking = [side for side, ratio in pairs if side[0] < _FRESH or ratio < 0.0]
        # Sides take turns, so that a machine that drifts cannot look like a change; one alone may run ahead
        # a while, but what is lacking may be how little is known of the other.
        side = min(lacking or done)
        if side[0] > 2 * min(done)[0] + 4:
            side = min(done)
        return Ask(side[1], 1 + self._own_trials // 100)

    def _confirmed(self, suspect: Slot) -> bool:
        boundary = self._boundaries.get((suspect.low, suspect.high))
        if boundary is None:
            return False
        support = boundary.support(self._counts, self._model)
        enough = min(boundary.trials(index) for index in (boundary.low, boundary.high)) >= _FRESH
        sides = enough and min(support.low, support.high) >= 0.0
        return sides and support.contrast >= boundary.needed_contrast()

    def _shape(self) -> Shape:
        if self._cached_shape is None:
            slots = self.belief.slots
            self._cached_shape = weigh(slots, self._counts, self._model, self._likeliest(), self._confidence)
        return self._cached_shape

    def _weighed(self) -> Weighed:
        likeliest = self._likeliest()
        suspect = self._suspect()
        return Weighed(likeliest, suspect is not None and self._confirmed(suspect), self._shape())
