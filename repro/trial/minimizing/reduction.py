"""Which elements a failure needs: a search by halves over spans. Pure: a callable says what holds."""

from __future__ import annotations

from typing import Callable, List, Sequence, Tuple

Span = Tuple[int, int]
"""Elements from the first number up to, and without, the second."""
Holds = Callable[[Sequence[Span]], bool]
"""Whether the failure stays where these elements alone keep their values."""


class Enough(Exception):  # noqa: N818
    """Raised by `holds` where time is up."""


def needed(spans: Sequence[Span], holds: Holds) -> Tuple[List[Span], bool]:
    """Elements that the failure needs, and whether the search came to its end.

    Every span that is left out is left out for good once the failure stays without it; one that is needed is
    halved. At the end no single element can be left out. For k needed elements of n about 2 k log2(n) runs.
    Source of the idea: Zeller and Hildebrandt, IEEE Trans. Softw. Eng. 28 (2002) 183 (delta debugging).
    """
    kept = list(spans)
    try:
        _halve(kept, holds)
        while _drop_singles(kept, holds):
            pass
    except Enough:
        return sorted(kept), False
    return sorted(kept), True


def _halve(kept: List[Span], holds: Holds) -> None:
    """Leave out what can be, largest spans first, down to single elements."""
    pending = sorted(kept, key=_length)
    while pending:
        span = pending.pop()
        rest = [one for one in kept if one != span]
        if holds(rest):
            kept[:] = rest
        elif _length(span) > 1:
            middle = (span[0] + span[1]) // 2
            halves = [(span[0], middle), (middle, span[1])]
            kept[:] = rest + halves
            pending = sorted(pending + halves, key=_length)


def _drop_singles(kept: List[Span], holds: Holds) -> bool:
    """Once more over what is left, since less is there now; whether anything could go."""
    before = len(kept)
    for span in list(kept):
        rest = [one for one in kept if one != span]
        if holds(rest):
            kept[:] = rest
    return len(kept) < before


def _length(span: Span) -> int:
    return span[1] - span[0]


def merged(spans: Sequence[Span]) -> List[Span]:
    """The same elements as few spans, in order."""
    found: List[Span] = []
    for start, stop in sorted(spans):
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
    return found


def rounder(value: float) -> List[float]:
    """Simpler values for a number, simplest first; without the number itself."""
    simple = [0.0, 1.0, -1.0, 0.5, *(float(round(value, digits)) for digits in range(4))]
    return [one for one in dict.fromkeys(simple) if one != value]
