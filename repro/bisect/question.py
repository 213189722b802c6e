"""What is asked of a line of candidates."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from repro.search import DEFAULT_MODEL, Model


class Find(StrEnum):
    """What is looked for."""

    REGRESSION = "regression"
    """Where the failure begins: the newest candidate fails."""
    FIX = "fix"
    """Where it ends: the oldest candidate fails."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked.

    Args:
        find: a beginning or an end.
        confidence: probability with which a name must be right.
        trials: of the end that has to fail, before the failure counts as not reproduced.
        budget: seconds that the search may take; None for no limit.
        replay: whether inputs that fail every time may decide.
    """

    find: Find = Find.REGRESSION
    confidence: float = 0.95
    trials: int = 200
    budget: float | None = None
    replay: bool = True

    @property
    def model(self) -> Model:
        """The prior that fits what is looked for."""
        return DEFAULT_MODEL if self.find is Find.REGRESSION else DEFAULT_MODEL.reversed()
