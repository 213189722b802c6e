"""Failing elements, each with what is known of it: precision, derivatives, the nearest jump."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from repro.adapting import Jump
from repro.inspect import Derivative, Precision, Probe


@dataclass(frozen=True, kw_only=True)
class Element:
    """One failing element of one comparison of one trial.

    Args:
        seed: of the trial.
        precision: the element against float64.
        derivatives: of either side's own function, by differences; none where it is no gradient.
        jump: the jump of the operator's derivative that is nearest, as an adapter sees it, or None.
        rounding: whether the test as a whole, run in float64, and errors that go on from those of passing
            trials say that it is rounding.
    """

    seed: int
    precision: Precision
    derivatives: Sequence[Derivative]
    jump: Jump | None = None
    rounding: bool = False

    @property
    def finite(self) -> bool:
        """Whether both values are numbers."""
        values = (self.precision.actual, self.precision.expected)
        return all(value is not None and math.isfinite(value) for value in values)

    @property
    def apart(self) -> float:
        """How far the two values are apart."""
        actual, expected = self.precision.actual, self.precision.expected
        return abs(actual - expected) if actual is not None and expected is not None else math.inf

    @property
    def at_jump(self) -> bool:
        """Whether the derivative jumps there, and both values are derivatives of the same function there."""
        return any(_between(each) for each in self.derivatives)

    @property
    def hides_a_jump(self) -> bool:
        """Whether it is of a gradient whose one-sided derivatives could not be measured."""
        unknown = any(each.why and "no gradient" not in each.why for each in self.derivatives)
        return unknown and not any(each.jump is not None for each in self.derivatives)

    @property
    def wrong_gradient(self) -> str:
        """The side whose gradient is not the derivative of its own function: "actual", "expected" or "".

        Where both sides come to the same in float64, their formulas are the derivative, and what lies beside
        it is rounding.
        """
        if self._same_in_float64 or self.rounding:
            return ""
        for each in self.derivatives:
            fits = each.actual_fits if each.side == "actual" else each.expected_fits
            if fits == "none" and not _between(each):
                return each.side
        return ""

    @property
    def wrong_function(self) -> bool:
        """Whether the two sides disagree as much when each is computed in float64."""
        return self._same_in_float64 is False and not self.at_jump

    @property
    def _same_in_float64(self) -> bool | None:
        """Whether the two sides nearly agree, each computed in float64; None where that is not known."""
        actual, expected = self.precision.actual_float64, self.precision.expected_float64
        if actual is None or expected is None or not self.finite or not self.apart:
            return None
        return abs(actual - expected) <= 0.1 * self.apart


def _between(derivative: Derivative) -> bool:
    """Whether the two values lie at the sides of a jump, or between them."""
    if not derivative.jump or derivative.left is None or derivative.right is None:
        return False
    low, high = sorted((derivative.left, derivative.right))
    slack = 3.0 * (derivative.noise or 0.0) + 0.02 * (high - low)
    values = (derivative.actual, derivative.expected)
    return all(value is not None and low - slack <= value <= high + slack for value in values)


def elements_of(seed: int, probe: Probe, jumps: Sequence[Jump], *, rounding: bool) -> Iterator[Element]:
    """The failing elements of a probed trial."""
    for precision in probe.precisions:
        if not precision.control:
            place = (precision.comparison, tuple(precision.element))
            yield Element(
                seed=seed,
                precision=precision,
                derivatives=[
                    each
                    for each in probe.derivatives
                    if each.element is not None and (each.comparison, tuple(each.element)) == place
                ],
                jump=next((each for each in jumps if each.seed == seed and _place(each) == place), None),
                rounding=rounding,
            )


def _place(jump: Jump) -> tuple[int, tuple[int, ...]]:
    return jump.comparison, tuple(jump.element)
