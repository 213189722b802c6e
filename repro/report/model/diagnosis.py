"""What `repro diagnose` found, as a report tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["supported", "ruled out", "untested"]


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A suspected cause, as `repro diagnose` weighed it.

    Args:
        name: of the cause.
        verdict: what the evidence says.
        evidence: a sentence each.
        share: share of the failing elements that it explains, or None.
    """

    name: str
    verdict: Verdict
    evidence: Sequence[str] = ()
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What `.repro/diagnosis.json` says; empty where `repro diagnose` has not run.

    Args:
        causes: best supported first.
        minimized: the smallest case that still fails, a line each.
        conclusion: what it comes to, a line each.
        predicted_rate: failure rate from first principles, or None.
        offsets: how far the coordinates of failing elements lie behind the jump that is nearest, in ulp;
            negative before it.
        advice: what to do about it, a line each.
        experiments: what was run, a line each.
        about: the cell and revision that it is about, in a sentence, or "".
        problem: why the file cannot be used, or "".
    """

    causes: Sequence[Cause] = ()
    minimized: Sequence[str] = ()
    conclusion: Sequence[str] = ()
    predicted_rate: float | None = None
    offsets: Sequence[float] = ()
    advice: Sequence[str] = ()
    experiments: Sequence[str] = ()
    about: str = ""
    problem: str = ""

    def of(self, verdict: Verdict) -> list[Cause]:
        """The causes with a verdict."""
        return [cause for cause in self.causes if cause.verdict == verdict]
