"""Sums whose order is not fixed: the same inputs give numbers that differ in their last digits."""

from __future__ import annotations

from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested
from repro.ui import count

NAME = "nondeterministic summation"
ADVICE = "fix the order of the sum, or allow what the order may change"


def weigh(evidence: Evidence) -> Cause:
    """See whether the same inputs give different numbers, and whether by rounding alone."""
    if not evidence.repeats:
        return untested(NAME, evidence.missing.get("repeat", "no failing seed was run again"))
    runs = sum(map(len, evidence.repeats.values()))
    if not evidence.varying:
        return ruled_out(
            NAME,
            f"{count(len(evidence.repeats), 'failing seed')}, run {runs} times: the comparison that fails"
            " gave the same numbers each time",
        )
    varies = f"{evidence.of_seeds} give other numbers from run to run ({count(runs, 'run')})"
    if evidence.first_only:
        return ruled_out(NAME, f"{varies}, but only the first run of a process is different")
    if evidence.cures("zero-fill"):
        return ruled_out(NAME, f"{varies}, but not where new memory is filled with 0")
    if not evidence.compares:
        return ruled_out(NAME, f"{varies}, but no numbers are compared that a sum could have changed")
    wide = evidence.wide
    if wide is None:
        return untested(NAME, f"{varies}; whether by rounding alone is not known: {evidence.why_not_wide}")
    if not wide.rounding:
        return ruled_out(NAME, f"{varies}, but by more than rounding: {wide.said}")
    told = [varies, f"{wide.said}: the differences are those of rounding"]
    if evidence.cures("deterministic"):
        told.append("with torch's deterministic algorithms the failure is gone")
    return supported(NAME, len(evidence.varying) / len(evidence.repeats), *told)
