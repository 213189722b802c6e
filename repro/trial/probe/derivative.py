"""Measures derivatives at compared elements by running the trial again with one input element moved.

Needs no knowledge of what is computed: the loss is caught where it is differentiated, so Triton's kernels and
functions with a backward of their own are measured like everything else.
"""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..request import ProbeRequest
from .calls import Call, Nudge
from .compared import Element, Side, no_gradient
from .file import ProbeFile
from .numbers import EPSILON, name_of
from .session import Session
from .slopes import Quotient, judge, slopes, step_sizes

Again = Callable[[Nudge], Session]
"""Runs the trial once more, with a change to one of its inputs."""

OUT_OF_TIME = "there was no time left for it"
ENDS_BEFORE = "with that element moved, the test ends before it differentiates"


class Derivatives:
    """Difference quotients at the elements of one trial.

    Args:
        again: runs the trial once more.
        file: takes what is found.
        options: how many elements, and how much time.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        again: Again,
        file: ProbeFile,
        options: ProbeRequest,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._again = again
        self._file = file
        self._options = options
        self._clock = clock
        self._until = clock() + options.seconds
        self._bases: Dict[Tuple[int, ...], Optional[_Base]] = {}

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self._clock() >= self._until

    def quotient(self, side: Side, by: float) -> Tuple[Optional[float], float]:
        """The quotient with an element moved by so much, None where it is not finite, and its noise."""
        base = self._base(side)
        if base is None:
            return None, 0.0
        value, noise = base.quotient(self._moved(side, by))
        return value, max(noise, base.unsteady / abs(by))

    def measure(self, elements: List[Element], leaves: List[Any]) -> None:
        """Measure one element after the other, the worst first.

        Args:
            elements: as compared.
            leaves: the trial's inputs, by number.
        """
        failing: Dict[int, int] = {}
        for one in elements:
            failing[one.comparison] = failing.get(one.comparison, 0) + (not one.control)
            if one.control or failing[one.comparison] <= self._options.differentiated:
                self._element(one, leaves)
            else:
                self._file.truncated = True

    def _element(self, one: Element, leaves: List[Any]) -> None:
        named = {
            "comparison": one.comparison,
            "element": one.element,
            "control": one.control,
            "actual": one.actual,
            "expected": one.expected,
        }
        if not one.sides:
            self._file.write("derivative", leaf=None, **named, why=no_gradient())
        for side in one.sides:
            told: Dict[str, Any] = {"why": OUT_OF_TIME}
            if not self.late:
                told = self._side(one, side, leaves[side.leaf])
            else:
                self._file.truncated = True
            self._file.write("derivative", side=side.name, leaf=side.leaf, **named, **told)

    def _side(self, one: Element, side: Side, leaf: Any) -> Dict[str, Any]:
        base = self._base(side)
        if base is None:
            return {"why": "run again, the trial does not come to where it differentiates"}
        quotients, ended = [], False
        for h in step_sizes(scale(leaf, side.element), EPSILON[name_of(leaf.dtype)]):
            runs = self._moved(side, -h), self._moved(side, h)
            ended = ended or not all(calls for calls, _ in runs)
            left, right = (base.quotient(run) for run in runs)
            noise = max(left[1], right[1], base.unsteady / h)
            quotients.append(Quotient(h, left[0], right[0], noise))
        steps = [{"h": each.h, "left": each.left, "right": each.right} for each in quotients]
        found = slopes(quotients)
        if found is None:
            few = "too few of the steps give a finite value on both sides"
            return {"steps": steps, "why": ENDS_BEFORE if ended else few}
        return {"steps": steps, **judge(found, one.actual, one.expected, one.tolerance, one.control)}

    def _base(self, side: Side) -> Optional[_Base]:
        """The function where nothing is moved; run twice, to see whether it is steady."""
        if side.calls not in self._bases:
            runs = [self._moved(side, 0.0) for _ in range(2)]
            first, second = (run[0] for run in runs)
            self._bases[side.calls] = _Base(first, second) if first and second else None
        return self._bases[side.calls]

    def _moved(self, side: Side, by: float) -> Tuple[List[Call], float]:
        """The calls of one side with an element moved, and how far it really moved; none if not made."""
        nudge = Nudge(side.leaf, side.element, by, last=max(side.calls))
        session = self._again(nudge)
        if len(session.calls) <= nudge.last or nudge.moved is None:
            return [], 0.0
        return [session.calls[number] for number in side.calls], nudge.moved


class _Base:
    """The calls of one side where nothing is moved.

    Args:
        calls: of a first run.
        again: of a second.
    """

    def __init__(self, calls: List[Call], again: List[Call]) -> None:
        self._calls = calls
        self.unsteady = abs(self._change(again)[0])

    def quotient(self, run: Tuple[List[Call], float]) -> Tuple[Optional[float], float]:
        """The difference quotient to another run, None where it is not finite, and its noise."""
        calls, moved = run
        if not calls or not moved:
            return None, 0.0
        change, noise = self._change(calls)
        return (change / moved if math.isfinite(change) else None), noise / abs(moved)

    def _change(self, calls: List[Call]) -> Tuple[float, float]:
        changes = [mine.change(theirs) for mine, theirs in zip(self._calls, calls)]  # noqa: B905
        return sum(change for change, _ in changes), math.sqrt(sum(noise**2 for _, noise in changes))


def scale(leaf: Any, element: Tuple[int, ...]) -> float:
    """The magnitude that a step is measured by: of the element, or of the input as a whole."""
    wide = leaf.detach().double().abs().nan_to_num(0.0, 0.0, 0.0)
    return max(float(wide[element]), float((wide**2).mean() ** 0.5))
