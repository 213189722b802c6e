"""What a comparison would make of bugs: how far its tolerances could be loosened and still catch each."""

from __future__ import annotations

import math
import sys
from typing import Any, Callable, Dict, List, Mapping

from .measure_torch import leaves_of, tolerances_of

_MOST = 50

Mutate = Callable[[Any, int], Any]
"""Takes values, flat and of float64, and the place of the largest; gives what a bug would make of them."""


def _lost(values: Any, largest: int) -> Any:
    values[largest] = 0.0
    return values


def _negated(values: Any, largest: int) -> Any:
    values[largest] = -values[largest]
    return values


def _scaled(values: Any, largest: int) -> Any:
    return values * 1.01


def _shifted(values: Any, largest: int) -> Any:
    return values.roll(1)


MUTATIONS: Mapping[str, Mutate] = {
    "all 1 % too large": _scaled,
    "the largest element lost": _lost,
    "the largest element's sign wrong": _negated,
    "all shifted by one": _shifted,
}


class Mutants:
    """Bugs put into what a trial compares; the comparison itself never sees them."""

    def __init__(self) -> None:
        self.found: List[Dict[str, Any]] = []

    def note(self, index: int, where: str, bound: Mapping[str, Any], passed: bool) -> None:
        """Put each bug into a comparison's actual values: its error, in units of the tolerance."""
        torch: Any = sys.modules.get("torch")
        if torch is None or len(self.found) >= _MOST or not _tensors(torch, bound):
            return
        leaf = next(iter(leaves_of(bound["actual"], bound["expected"], "")))
        actual, expected = leaf[1], leaf[2]
        atol, rtol = tolerances_of(torch, bound, actual, expected)
        with torch.no_grad():
            values, right = (each.detach().double().reshape(-1) for each in (actual, expected))
            if not values.numel() or values.shape != right.shape or not right.isfinite().all():
                return
            largest = int(right.abs().argmax())
            ratios = {
                name: _ratio(mutate(right.clone(), largest), right, atol, rtol)
                for name, mutate in MUTATIONS.items()
            }
        self.found.append({"index": index, "mutants": ratios})


def _tensors(torch: Any, bound: Mapping[str, Any]) -> bool:
    sides = (bound.get("actual"), bound.get("expected"))
    return all(isinstance(each, torch.Tensor) and each.is_floating_point() for each in sides)


def _ratio(values: Any, right: Any, atol: float, rtol: float) -> float:
    """The largest error in units of the tolerance."""
    error = (values - right).abs()
    allowed = right.abs() * rtol + atol
    ratio = float((error / allowed).nan_to_num(nan=0.0, posinf=math.inf).max())
    return ratio if math.isfinite(ratio) else 1e300
