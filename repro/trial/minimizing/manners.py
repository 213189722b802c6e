"""In what manner compared values differ: a number for another, or something that is no number."""

from __future__ import annotations

import math
from typing import Any, Iterable, Mapping, Set

_SIDES = {
    (True, True): "two numbers",
    (False, True): "actual is no number",
    (True, False): "expected is no number",
    (False, False): "neither is a number",
}


def manners(end: Mapping[str, Any]) -> Set[str]:
    """How the elements differ that fail in a trial; NaN and infinities are no numbers.

    A smaller case that divides 0 by 0 fails in the same comparison as the one that lost its digits, and is
    another failure.

    Args:
        end: its `end` line, or the same before it is written.
    """
    return {
        _SIDES[_is_number(at.get("actual")), _is_number(at.get("expected"))]
        for one in end.get("comparisons") or ()
        for at in (one.get("worst") or ())
        if not one.get("passed")
    }


def same_manner(end: Mapping[str, Any], known: Iterable[str]) -> bool:
    """Whether elements differ in known manners alone; also where none is known."""
    known, seen = set(known), manners(end)
    return not known or (bool(seen) and seen <= known)


def _is_number(value: Any) -> bool:
    """A record has texts for what JSON cannot say: those of NaN, infinities and complex numbers."""
    if isinstance(value, str):
        return "nan" not in value and "inf" not in value
    return not isinstance(value, float) or math.isfinite(value)
