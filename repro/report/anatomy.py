"""What failures look like, computed from the comparisons that a bounded number of trials recorded."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from repro.report.model import Agreement, Anatomy, Dimension, Element, Failure, Neighbour, Spread
from repro.store.bounded import Failing

WORST = 6
"""Elements that are shown of each kind of failure."""

PARTS = 24
"""Equal parts that a dimension is divided into, at most."""

Compared = Mapping[str, Any]


def describe(
    failing: Sequence[Failing], passing: Sequence[Sequence[Compared]], agreed: Agreement | None
) -> Anatomy:
    """The anatomy of failing trials, beside what the same comparisons gave in passing ones."""
    kinds: dict[str, list[Failing]] = defaultdict(list)
    for trial in failing:
        kinds[trial.signature_key].append(trial)
    ordered = sorted(kinds.values(), key=len, reverse=True)
    decided = [one for trial in (ordered[0] if ordered else ()) if (one := culprit(trial)) is not None]
    number = decided[0].get("index") if decided else None
    return Anatomy(
        looked_at=len(failing),
        failures=[_failure(trials) for trials in ordered],
        agreement=agreed,
        neighbours=_neighbours([trial.comparisons for trial in failing], number),
        failing_ratios=_ratios(decided),
        passing_ratios=_ratios(one for trial in passing for one in trial if one.get("index") == number),
        dimensions=_dimensions(decided),
    )


def culprit(trial: Failing) -> Compared | None:
    """The comparison that failed the trial; None where none did."""
    number = trial.signature.get("comparison")
    for one in trial.comparisons:
        if one.get("index") == number and number is not None:
            return one
    failed = [one for one in trial.comparisons if one.get("passed") is False]
    return failed[-1] if failed else None


def _failure(trials: Sequence[Failing]) -> Failure:
    first = trials[0]
    decided = [one for trial in trials if (one := culprit(trial)) is not None]
    about = decided[0] if decided else {}
    return Failure(
        key=first.signature_key,
        source=str(first.signature.get("source") or ""),
        trials=len(trials),
        comparison=about.get("index"),
        function=str(about.get("function", "")),
        where=str(about.get("where", "")) or _place(first.signature),
        dtype=str(about.get("dtype", "")),
        shape=tuple(about.get("shape") or ()),
        size=int(about.get("size") or 0),
        atol=_maybe(about.get("atol")),
        rtol=_maybe(about.get("rtol")),
        mismatched=_spread(one.get("mismatched") for one in decided),
        error=_spread(one.get("max_abs") for one in decided),
        ratio=_spread(one.get("ratio") for one in decided),
        special=sum(any(one.get("nan") or ()) or any(one.get("inf") or ()) for one in decided),
        worst=_worst(trials),
        message=first.message,
    )


def _place(signature: Compared) -> str:
    parts = (signature.get("file"), signature.get("function"), signature.get("line"))
    return ":".join(str(part) for part in parts if part)


def _worst(trials: Sequence[Failing]) -> list[Element]:
    """The worst element of each failing seed, largest errors first; a seed once, whatever the cell."""
    found: dict[tuple[int, tuple[int, ...]], Element] = {}
    for trial in trials:
        one = culprit(trial) or {}
        for row in (one.get("worst") or ())[:1]:
            element = _element(trial.seed, row, one)
            found.setdefault((trial.seed, tuple(element.index)), element)
    return sorted(found.values(), key=_badness)[:WORST]


def _element(seed: int, row: Compared, one: Compared) -> Element:
    expected = _number(row.get("expected"))
    allowed = (_number(one.get("atol")) or 0.0) + (_number(one.get("rtol")) or 0.0) * abs(expected)
    index = row.get("index")
    return Element(
        seed=seed,
        index=tuple(index) if isinstance(index, list) else (),
        actual=_number(row.get("actual")),
        expected=expected,
        allowed=allowed,
    )


def _badness(element: Element) -> tuple[float, int]:
    error = abs(element.actual - element.expected)
    return (-math.inf if math.isnan(error) else -error), element.seed


def _neighbours(trials: Sequence[Sequence[Compared]], number: Any) -> list[Neighbour]:
    """The other comparisons that failing trials made."""
    rows: dict[int, list[Compared]] = defaultdict(list)
    for one in (one for trial in trials for one in trial):
        if one.get("index") != number and one.get("ratio") is not None:
            rows[int(one["index"])].append(one)
    return [
        Neighbour(
            comparison=index,
            where=str(found[0].get("where", "")),
            trials=len(found),
            failed=sum(one.get("passed") is False for one in found),
            ratio=max(_number(one["ratio"]) for one in found),
        )
        for index, found in sorted(rows.items())
    ]


def _dimensions(decided: Sequence[Compared]) -> list[Dimension]:
    """How failing elements spread over each dimension of the tensor, for dimensions larger than 1."""
    shape = tuple((decided[0].get("shape") or ()) if decided else ())
    same = [one for one in decided if tuple(one.get("shape") or ()) == shape]
    places = [
        tuple(row["index"])
        for one in same
        for row in one.get("worst") or ()
        if isinstance(row.get("index"), list) and len(row["index"]) == len(shape)
    ]
    return [
        Dimension(number=number, size=size, counts=_histogram([place[number] for place in places], size))
        for number, size in enumerate(shape)
        if size > 1 and places
    ]


def _histogram(values: Sequence[int], size: int) -> list[int]:
    parts = min(size, PARTS)
    counts = Counter(min(value * parts // size, parts - 1) for value in values)
    return [counts[part] for part in range(parts)]


def _ratios(compared: Iterable[Compared]) -> list[float]:
    return [_number(one["ratio"]) for one in compared if one.get("ratio") is not None]


def _spread(values: Iterable[Any]) -> Spread | None:
    numbers = sorted(
        number for value in values if value is not None and not math.isnan(number := _number(value))
    )
    return Spread(low=numbers[0], middle=median(numbers), high=numbers[-1]) if numbers else None


def _maybe(value: Any) -> float | None:
    return None if value is None else _number(value)


def _number(value: Any) -> float:
    """A recorded number; NaN and infinities are recorded as texts."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
