"""What searches answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One candidate of a search."""

    label: str
    failed: int
    trials: int
    replayed_failed: int = 0
    replayed: int = 0
    first_bad: bool = False


@dataclass(frozen=True, kw_only=True)
class Search:
    """What one `repro bisect` answered.

    Args:
        axis: searched along.
        sentence: the verdict.
        decided: whether the answer is a name, a range that cannot be narrowed, or that nothing changed.
        changed: whether a change was found; None where there is no answer.
        link: web address that shows the change, or "".
        tried: in order of the line.
        untestable: candidates that cannot be tested, with the reason.
        details: further sentences.
        belief: where the change may be, and how likely it is there; the likeliest first.
    """

    axis: str
    sentence: str
    decided: bool
    changed: bool | None = None
    link: str = ""
    tried: Sequence[Tried] = ()
    untestable: Sequence[str] = ()
    details: Sequence[str] = ()
    belief: Sequence[tuple[str, float]] = ()
