"""What to try next to make a case smaller. Pure: a callable says what becomes of each case.

After Hypothesis' shrinker (MacIver and Donaldson, ECOOP 2020): greedy passes over all parameters until none
gets smaller, each by a search of its own: 1 first, then halves, then between the last two. What is equal goes
down together first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

from repro.minimize.case import Case, Kind, Parameter
from repro.trial.minimizing.reduction import rounder


class Verdict(StrEnum):
    """What became of a case."""

    STAYS = "stays"
    """It fails as the first one did."""
    GONE = "gone"
    SAME = "same"
    """It fails, and every number that was compared is the same: the change has no effect."""


Try = Callable[[Case], Verdict]
Holds = Callable[[Any], bool]

_ORDER = (Kind.BOOL, Kind.CHOICE, Kind.SIZES, Kind.INT, Kind.FLOAT)
"""Options first, as each may switch much off; then lists, then numbers, the largest first."""


class Shrinking:
    """Makes one case smaller.

    Args:
        parameters: what it is made of.
        attempt: what becomes of a case; may raise to end the search, after which `best` holds.
    """

    def __init__(self, parameters: Sequence[Parameter], attempt: Try) -> None:
        self.best = Case()
        self.without_effect: list[Parameter] = []
        self._attempt = attempt
        self._known: dict[str, bool] = {}
        self._parameters = sorted((one for one in parameters if one.kind in _ORDER), key=_rank)

    def run(self) -> None:
        """Pass over all parameters until nothing gets smaller."""
        self._statements()
        while self._pass():
            pass

    def value(self, parameter: Parameter) -> Any:
        """Its value in the smallest case so far."""
        return self.best.values.get(parameter.key, parameter.value)

    def _statements(self) -> None:
        """What one statement binds goes down together at first: at best at once, or all without effect."""
        for statement in dict.fromkeys(one.statement for one in self._parameters if one.statement):
            members = [one for one in self._parameters if one.statement == statement]
            case = self.best
            for one in members:
                case = case.having(one.key, _least(one.value))
            if self._try(case) is Verdict.SAME:
                self._drop(members)

    def _pass(self) -> bool:
        before = self.best
        for members in self._equals():
            self._shrink(members)
        for parameter in list(self._parameters):
            if parameter in self._parameters:
                self._shrink([parameter])
        return self.best is not before

    def _equals(self) -> list[list[Parameter]]:
        """Sizes that are equal, and not the least already: two times `randn(3, 16)` are one shape."""
        groups: dict[str, list[Parameter]] = {}
        for one in self._parameters:
            value = self.value(one)
            if one.kind in (Kind.INT, Kind.SIZES) and value != _least(value):
                groups.setdefault(json.dumps(value), []).append(one)
        return [members for members in groups.values() if len(members) > 1]

    def _shrink(self, members: Sequence[Parameter]) -> None:
        """Make parameters of one kind and value smaller, all at once."""
        parameter = members[0]

        def holds(value: Any) -> bool:
            if parameter not in self._parameters:
                return False
            case = self.best
            for one in members:
                case = case.having(one.key, value)
            verdict = self._try(case)
            if verdict is Verdict.SAME:
                self._drop(members)
            return verdict is Verdict.STAYS

        value = self.value(parameter)
        if parameter.kind is Kind.INT:
            smallest_integer(value, holds)
        elif parameter.kind is Kind.SIZES:
            smallest_sizes(value, holds, fixed=any(one.fixed for one in members))
        else:
            any(holds(simple) for simple in simpler(parameter, value))

    def _drop(self, members: Iterable[Parameter]) -> None:
        for one in members:
            self._parameters.remove(one)
            self.without_effect.append(one)

    def _try(self, case: Case) -> Verdict:
        """What becomes of a case; the smallest one so far is remembered."""
        if self._known.get(case.identity) is False or case.identity == self.best.identity:
            return Verdict.GONE
        verdict = self._attempt(case)
        self._known[case.identity] = verdict is Verdict.STAYS
        if verdict is Verdict.STAYS:
            self.best = case
        return verdict


def _rank(parameter: Parameter) -> tuple[int, float]:
    size = parameter.value if parameter.kind is Kind.INT else 0
    return _ORDER.index(parameter.kind), -float(size)


def smallest_integer(value: int, holds: Holds) -> int:
    """1, else halves as long as one holds, else the least that halving the rest finds."""
    if value <= 1 or holds(1):
        return min(value, 1)
    while value // 2 > 1 and holds(value // 2):
        value //= 2
    low = max(value // 2, 1)
    while value - low > 1:
        middle = (low + value) // 2
        if holds(middle):
            value = middle
        else:
            low = middle
    return value


def smallest_sizes(sizes: Sequence[Any], holds: Holds, *, fixed: bool) -> list[Any]:
    """One element of the list, else as few as hold; then each number in it, together and one by one."""
    found = list(sizes)
    if not fixed:
        found = _alone(found, holds) or _fewer(found, holds)
    found = _together(found, holds)
    for path in list(_paths(found)):
        kept = list(found)
        number = smallest_integer(_at(kept, path), lambda new, p=path, k=kept: holds(_with(k, p, new)))  # type: ignore[misc]
        found = _with(found, path, number)
    return found


def _alone(sizes: Sequence[Any], holds: Holds) -> list[Any]:
    """The first element that does alone; smallest first."""
    if len(sizes) < 2:
        return []
    ordered = sorted(sizes, key=_weight)
    return next(([one] for one in ordered if holds([one])), [])


def _fewer(sizes: list[Any], holds: Holds) -> list[Any]:
    """Without each element that is not needed."""
    place = 0
    while place < len(sizes) and len(sizes) > 1:
        rest = sizes[:place] + sizes[place + 1 :]
        if holds(rest):
            sizes = rest
        else:
            place += 1
    return sizes


def _together(sizes: list[Any], holds: Holds) -> list[Any]:
    """All numbers at 1, else halved at once as long as that holds: sizes often depend on each other."""
    if holds(least := _least(sizes)):
        return list(least)
    while (halved := _halved(sizes)) != sizes and holds(halved):
        sizes = halved
    return sizes


def simpler(parameter: Parameter, value: Any) -> Iterator[Any]:
    """Simpler values of an option, simplest first: off, an earlier one of the list, a round number."""
    if parameter.kind is Kind.BOOL:
        yield from [False] if value else []
    elif parameter.kind is Kind.CHOICE:
        yield from range(value)
    else:
        yield from (one for one in rounder(value) if abs(one) <= max(abs(value), 1.0))


def _least(value: Any) -> Any:
    """The same nesting with 1 in each place."""
    return [_least(one) for one in value] if isinstance(value, list) else min(value, 1)


def _halved(value: Any) -> Any:
    return [_halved(one) for one in value] if isinstance(value, list) else max(value // 2, min(value, 1))


def _weight(value: Any) -> int:
    """How much a size stands for: its product."""
    if not isinstance(value, list):
        return int(value)
    product = 1
    for one in value:
        product *= _weight(one)
    return product


def _paths(value: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if isinstance(value, list):
        for place, one in enumerate(value):
            yield from _paths(one, (*path, place))
    else:
        yield path


def _at(value: Any, path: tuple[int, ...]) -> Any:
    return _at(value[path[0]], path[1:]) if path else value


def _with(value: Any, path: tuple[int, ...], new: Any) -> Any:
    if not path:
        return new
    return [_with(one, path[1:], new) if place == path[0] else one for place, one in enumerate(value)]
