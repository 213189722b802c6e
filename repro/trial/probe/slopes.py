"""From difference quotients over several steps to the derivatives on both sides, with their errors.

A quotient is the derivative, plus a part that grows with the step (the function bends), plus noise that grows
as the step shrinks (the function's values are rounded). So a line is fitted to the quotients, with weights
that go with the square of the step, over those of the smaller steps that a line suits best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

_LEAST = 3
_SURE = 5.0
_STUDENT = {2: 2.2, 4: 1.42, 6: 1.25, 8: 1.18}
"""How much wider 95 % are where a spread is known from so few degrees of freedom."""


@dataclass(frozen=True)
class Quotient:
    """What one step gave.

    Args:
        h: the step.
        left: quotient to the left, or None.
        right: quotient to the right, or None.
        noise: what rounding alone may have added to either.
    """

    h: float
    left: Optional[float]
    right: Optional[float]
    noise: float = 0.0


@dataclass(frozen=True)
class Slopes:
    """The derivatives for a step of 0, and the standard error of each."""

    left: float
    right: float
    noise: float


def slopes(quotients: Sequence[Quotient]) -> Optional[Slopes]:
    """The derivatives on both sides; None where fewer than three steps gave both."""
    known = [one for one in quotients if one.left is not None and one.right is not None]
    known.sort(key=lambda one: -one.h)
    found = [_fit(known[first:]) for first in range(len(known) - _LEAST + 1)]
    return min(found, key=lambda one: one.noise) if found else None


def _fit(known: Sequence[Quotient]) -> Slopes:
    (left, rest_left, spread), (right, rest_right, _) = (
        _line([(one.h, value) for one, value in zip(known, values)])  # noqa: B905
        for values in ([one.left or 0.0 for one in known], [one.right or 0.0 for one in known])
    )
    freedom = 2 * (len(known) - 2)
    scatter = (rest_left + rest_right) / freedom * _STUDENT.get(freedom, 1.0) ** 2  # of the weights, h²
    rounding = max(one.noise * one.h for one in known) ** 2
    exact = (abs(left) + abs(right)) * 2.0**-40  # float64's own rounding
    return Slopes(left, right, math.sqrt(max(scatter, rounding) * spread) + exact)


def _line(points: Sequence[Tuple[float, float]]) -> Tuple[float, float, float]:
    """Value of a fitted line at 0, weighted sum of squares left over, and variance of the value per unit."""
    top = max(h for h, _ in points)
    rows = [(h * h, h / top, y) for h, y in points]
    w, wx, wy = (sum(row) for row in zip(*((w, w * x, w * y) for w, x, y in rows)))  # noqa: B905
    wxx, wxy = (sum(row) for row in zip(*((w * x * x, w * x * y) for w, x, y in rows)))  # noqa: B905
    determinant = w * wxx - wx * wx
    at_zero = (wxx * wy - wx * wxy) / determinant
    slope = (w * wxy - wx * wy) / determinant
    rest = sum(w * (y - at_zero - slope * x) ** 2 for w, x, y in rows)
    return at_zero, rest, wxx / determinant


def judge(found: Slopes, actual: float, expected: float, tolerance: float, control: bool) -> Dict[str, Any]:
    """Whether the derivative jumps, and to which side each compared value belongs.

    Args:
        found: the derivatives.
        actual: gradient as compared.
        expected: gradient as compared.
        tolerance: how far the comparison let the two be apart.
        control: whether it did not object to them.
    """
    apart = abs(actual - expected)
    allowed = tolerance if control or not math.isfinite(apart) else min(tolerance, apart / 2)
    noise = 3 * found.noise
    hidden = noise > max(tolerance, apart / 2 if math.isfinite(apart) else 0.0)
    gap, error = abs(found.right - found.left), _SURE * math.sqrt(2) * found.noise
    jump: Optional[bool] = gap > max(error, tolerance / 10, 1e-6 * max(abs(found.left), abs(found.right)))
    return {
        "left": found.left,
        "right": found.right,
        "central": (found.left + found.right) / 2,
        "noise": found.noise,
        "jump": None if hidden and not jump else jump,
        "actual_fits": None if hidden else _fits(found, actual, allowed + noise),
        "expected_fits": None if hidden else _fits(found, expected, allowed + noise),
    }


def _fits(found: Slopes, value: float, allowed: float) -> str:
    left, right = (abs(value - side) <= allowed for side in (found.left, found.right))
    if left and right:
        return "both"
    return "left" if left else "right" if right else "none"


def step_sizes(scale: float, epsilon: float) -> List[float]:
    """Powers of two around the root of the type's epsilon, largest first."""
    middle = round(math.log2(math.sqrt(epsilon) * (scale or 1.0)))
    offsets = (4, 2, 1, 0, -2, -4) if epsilon < 2.0**-11 else (1, 0, -1, -2, -3)
    return [2.0 ** (middle + offset) for offset in offsets]
