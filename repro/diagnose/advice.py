"""What to do about a cause."""

from __future__ import annotations

from collections.abc import Sequence

from repro.diagnose.causes import ADVICE
from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, Verdict
from repro.stats import clean_runs_needed, wilson
from repro.ui import count


def advise(evidence: Evidence, causes: Sequence[Cause]) -> list[str]:
    """What to do, for each cause that is supported, and how to see that it helped."""
    told = [f"{cause.name}: {ADVICE[cause.name]}" for cause in causes if cause.verdict is Verdict.SUPPORTED]
    low = wilson(evidence.failed, evidence.trials).low
    if told and 0.0 < low < 1.0:
        told.append(
            f"after the fix: repro verify-fix; {count(clean_runs_needed(low), 'clean run')} rule out the rate"
            " seen so far, with 95 % confidence"
        )
    return told
