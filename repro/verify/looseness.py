"""Whether the fixed side's test asks for less: told from what its comparisons recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from repro import ui
from repro.store import Trial
from repro.trial.records import Outcome

Compared = dict[tuple[int, str], Mapping[str, Any]]


def looseness(as_is: Iterable[Trial], fixed: Iterable[Trial]) -> list[str]:
    """What the fixed side's comparisons let pass that the subject's own did not, a sentence each.

    Args:
        as_is: trials of the subject as it is.
        fixed: trials of the fixed side; those that passed on either side are looked at.
    """
    before, after = _compared(as_is), _compared(fixed)
    if not before or not after:
        return []
    told = [
        sentence
        for place in sorted(before)
        if place in after
        for sentence in _looser(place, before[place], after[place])
    ]
    missing = len(before) - len(after)
    if missing > 0:
        now = ui.count(len(after), "comparison")
        told.append(f"the fixed side makes {now} where the test made {len(before)}")
    return told


def _compared(trials: Iterable[Trial]) -> Compared:
    """The comparisons of the first trial that passed: by number and by place in what was compared."""
    for trial in trials:
        if trial.outcome is Outcome.PASSED and trial.comparisons:
            return {(one["index"], one.get("item", "")): one for one in trial.comparisons}
    return {}


def _looser(place: tuple[int, str], before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    name = f"comparison {place[0]}{place[1]}"
    told = [
        f"{name} has {key} {after[key]:g} in place of {before[key]:g}"
        for key in ("atol", "rtol")
        if _number(before.get(key)) and _number(after.get(key)) and after[key] > before[key]
    ]
    if before.get("size") and _number(after.get("size")) and after["size"] < before["size"]:
        now = ui.count(after["size"], "element")
        told.append(f"{name} is of {now} in place of {before['size']}")
    return told


def _number(value: object) -> bool:
    return isinstance(value, int | float)
