"""Elements of comparisons: what each side gave, what float64 gives, and whose gradient it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..comparing.measure_numbers import unravel
from ..comparing.measure_torch import tolerances_of
from ..request import ProbeRequest
from .file import ProbeFile
from .numbers import spacing
from .pairs import Values, pairs_of, seen
from .session import Session

_NO_GRADIENT = "the compared tensor is no gradient that backward or grad gave, whole and in order"


@dataclass(frozen=True)
class Side:
    """Whose gradient a compared tensor is.

    Args:
        name: "actual" or "expected".
        leaf: number of the input.
        calls: numbers of the calls to differentiate that gave it.
        element: index in the input.
    """

    name: str
    leaf: int
    calls: Tuple[int, ...]
    element: Tuple[int, ...]


@dataclass(frozen=True)
class Element:
    """One compared element of gradients.

    Args:
        comparison: index of the comparison.
        element: index in the compared tensors.
        control: whether it is a passing one.
        actual: its value.
        expected: its value.
        tolerance: how far the two may be apart.
        sides: whose gradients were compared; none where neither is one.
    """

    comparison: int
    element: Tuple[int, ...]
    control: bool
    actual: float
    expected: float
    tolerance: float
    sides: Tuple[Side, ...]


@dataclass(frozen=True)
class _Comparison:
    """One pair of a call that compares."""

    index: int
    number: int
    where: str
    bound: Mapping[str, Any]
    passed: bool


class Examiner:
    """Looks at failed comparisons while their tensors are at hand; for gradcheck, at those that pass, too.

    Args:
        session: the run that they belong to.
        file: takes the elements.
        options: how many.
        moved: what runs compared whose inputs were moved by their own rounding.

    `elements` are held against float64 and differences, `checked` go to gradcheck.
    """

    def __init__(
        self, session: Session, file: ProbeFile, options: ProbeRequest, moved: Sequence[Values] = ()
    ) -> None:
        self._session = session
        self._file = file
        self._options = options
        self._moved = moved
        self.elements: List[Element] = []
        self.checked: List[Element] = []

    def note(self, index: int, where: str, bound: Mapping[str, Any], passed: bool) -> None:
        """A comparison was made."""
        if passed and not self._options.gradcheck:
            return
        with self._session.guarded():
            for number, actual, expected in pairs_of(self._session, bound):
                self._pair(_Comparison(index, number, where, bound, passed), actual, expected)

    def _pair(self, one: _Comparison, actual: Any, expected: Any) -> None:
        torch = self._session.torch
        atol, rtol = tolerances_of(torch, one.bound, actual, expected)
        wide = [each.detach().double() for each in (actual, expected.to(actual.device))]
        close = torch.isclose(*wide, rtol=rtol, atol=atol, equal_nan=bool(one.bound.get("equal_nan")))
        close = close.reshape(-1)
        facts = [self._side(name, each) for name, each in (("actual", actual), ("expected", expected))]

        def element(place: int) -> Element:
            at = tuple(unravel(place, list(actual.shape)))
            ours, theirs = (float(each.reshape(-1)[place]) for each in wide)
            sides = tuple(side for side in (self._gradient(fact, at) for fact in facts) if side)
            return Element(
                one.index, at, bool(close[place]), ours, theirs, atol + rtol * abs(theirs), sides
            )  # fmt: skip

        places = [] if one.passed else self._places(wide, close, atol, rtol)
        for place in places:
            self.elements.append(element(place))
            told = self._truth(facts, place, self.elements[-1], actual.dtype)
            if "actual_ulp" in told:
                unit = self._unit(told["truth"], actual.dtype)
                told["inputs_ulp"] = self._spread(one, place, told, unit)
            self._tell(one, self.elements[-1], told)
        first = range(min(actual.numel(), self._options.gradcheck))
        self.checked += map(element, list(dict.fromkeys([*places, *first]))[: len(first)])

    def _tell(self, one: _Comparison, element: Element, told: Dict[str, Any]) -> None:
        self._file.write(
            "precision",
            comparison=one.index,
            where=one.where,
            element=element.element,
            control=element.control,
            actual=element.actual,
            expected=element.expected,
            **told,
        )

    def _places(self, wide: List[Any], close: Any, atol: float, rtol: float) -> List[int]:
        """The elements that are furthest apart, and passing ones at even distances among them."""
        torch = self._session.torch
        actual, expected = (one.reshape(-1) for one in wide)
        excess = ((actual - expected).abs() - (expected.abs() * rtol + atol)).nan_to_num(math.inf)
        failing, passing = (~close).nonzero().flatten(), close.nonzero().flatten()
        worst = excess[failing].topk(min(self._options.elements, failing.numel())).indices
        count = min(self._options.controls, passing.numel())
        spread = torch.linspace(0, passing.numel() - 1, count, device=passing.device).long()
        found: List[int] = failing[worst].tolist()
        if len(found) < failing.numel():
            self._file.truncated = True
        return [*found, *passing[spread].tolist()]

    def _side(self, name: str, tensor: Any) -> Dict[str, Any]:
        wide, shadow = seen(self._session, tensor)
        return {"name": name, "tensor": tensor, "wide": wide, "shadow": shadow}

    def _truth(self, facts: List[Dict[str, Any]], place: int, element: Element, dtype: Any) -> Dict[str, Any]:
        """What float64 says of one element."""
        values, tolerance = (element.actual, element.expected), element.tolerance
        opaque = [fact["shadow"].opaque for fact in facts]
        wide = [None if why else float(fact["wide"][place]) for fact, why in zip(facts, opaque)]  # noqa: B905
        told: Dict[str, Any] = {"actual_float64": wide[0], "expected_float64": wide[1], "truth": None}
        sides = [value for value in wide if value is not None]
        if not sides:
            return {**told, "why": f"actual: {opaque[0]}; expected: {opaque[1]}"}
        if len(sides) == 2 and not _within(sides[0], sides[1], tolerance):
            return {**told, "why": "in float64, too, the two sides differ: they compute different things"}
        truth = sides[-1]
        told["truth"] = truth
        if math.isfinite(truth):
            unit = self._unit(truth, dtype)
            told.update(actual_ulp=abs(values[0] - truth) / unit, expected_ulp=abs(values[1] - truth) / unit)
        wrong = [not _within(value, truth, tolerance) for value in values]
        names = {(True, True): "both", (True, False): "actual", (False, True): "expected"}
        return {**told, "wrong": names.get((wrong[0], wrong[1]), "neither")}

    def _unit(self, truth: float, dtype: Any) -> float:
        """The unit in the last place of a type at a value."""
        torch = self._session.torch
        return float(spacing(torch, torch.tensor(truth, dtype=torch.float64), dtype))

    def _spread(self, one: _Comparison, place: int, told: Dict[str, Any], unit: float) -> Optional[float]:
        """How far moved inputs move either side at most, in units; None where neither is known."""
        still = (told["actual_float64"], told["expected_float64"])
        found = []
        for values in self._moved:
            for moved, value in zip(values.found.get((one.index, one.number), ()), still):  # noqa: B905
                if moved is not None and value is not None and place < moved.numel():
                    found.append(abs(float(moved[place]) - value) / unit)
        return max((each for each in found if math.isfinite(each)), default=None)

    def _gradient(self, fact: Dict[str, Any], element: Tuple[int, ...]) -> Optional[Side]:
        """The input whose gradient a compared tensor is, and the element of it."""
        found, tensor = fact["shadow"].gradient, fact["tensor"]
        if found is None or not found.whole:
            return None
        leaf = self._session.leaves.tensors[found.leaf]
        if tensor.shape != leaf.shape:
            place = sum(i * stride for i, stride in zip(element, tensor.stride()))  # noqa: B905
            element = tuple(unravel(place + tensor.storage_offset(), list(leaf.shape)))
        return Side(fact["name"], found.leaf, tuple(found.calls), element)


def no_gradient() -> str:
    """Why the derivative of an element cannot be measured."""
    return _NO_GRADIENT


def _within(value: float, truth: float, tolerance: float) -> bool:
    if not (math.isfinite(value) and math.isfinite(truth)):
        return value == truth or (math.isnan(value) and math.isnan(truth))
    return abs(value - truth) <= tolerance
