"""Two probes side by side: the first step at which they part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from repro.inspect.records import Step

ROUNDING = 1e-3
"""Relative difference of a step's numbers up to which two cells differ by rounding alone."""


@dataclass(frozen=True, kw_only=True)
class Parting:
    """Where two cells part.

    Args:
        matched: steps that both cells took, in the same order.
        here, there: steps that one cell alone took.
        bits: the first step whose bits differ, in both cells; None where all are identical.
        numbers: the first one whose counts, extremes or mean differ by more than rounding, or None.
        path: the first step that one of the cells alone took, or None.
    """

    matched: int
    here: int
    there: int
    bits: tuple[Step, Step] | None
    numbers: tuple[Step, Step] | None
    path: Step | None

    @property
    def identical(self) -> bool:
        """Whether both took the same steps to the same bits."""
        return self.bits is None and not self.here and not self.there


def parting(here: Sequence[Step], there: Sequence[Step]) -> Parting:
    """Match the steps of two probes by operation, phase and shape, and find where they part."""
    matcher = SequenceMatcher(None, [_kind(s) for s in here], [_kind(s) for s in there], autojunk=False)
    pairs = [
        (here[block.a + i], there[block.b + i])
        for block in matcher.get_matching_blocks()
        for i in range(block.size)
    ]
    return Parting(
        matched=len(pairs),
        here=len(here) - len(pairs),
        there=len(there) - len(pairs),
        bits=next((pair for pair in pairs if pair[0].digest != pair[1].digest), None),
        numbers=next((pair for pair in pairs if _apart(*pair)), None),
        path=_alone(matcher, here, there),
    )


def _kind(step: Step) -> tuple[object, ...]:
    return step.phase, step.op, step.out, step.shape, step.dtype


def _apart(one: Step, other: Step) -> bool:
    if (one.nan, one.inf) != (other.nan, other.inf):
        return True
    scale = max(one.largest or 0.0, other.largest or 0.0)
    numbers = [(one.min, other.min), (one.max, other.max), (one.mean_abs, other.mean_abs)]
    return any(
        not math.isclose(a, b, rel_tol=ROUNDING, abs_tol=ROUNDING * scale)
        for a, b in numbers
        if a is not None and b is not None
    )


def _alone(
    matcher: SequenceMatcher[tuple[object, ...]], here: Sequence[Step], there: Sequence[Step]
) -> Step | None:
    for tag, a, a_end, b, _ in matcher.get_opcodes():
        if tag != "equal":
            return here[a] if a < a_end else there[b]
    return None
