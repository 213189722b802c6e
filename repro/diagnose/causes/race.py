"""A race: the same inputs give numbers that differ by more than rounding."""

from __future__ import annotations

from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested

NAME = "race"
ADVICE = "look for writes that overlap: a missing atomic or barrier, two programs with one output"


def weigh(evidence: Evidence) -> Cause:
    """See whether the same inputs give different numbers, and whether more digits leave that as it is."""
    if not evidence.repeats:
        return untested(NAME, evidence.missing.get("repeat", "no failing seed was run again"))
    if not evidence.varying:
        return ruled_out(
            NAME, "with the same inputs, the comparison that fails gives the same numbers every time"
        )
    varies = f"{evidence.of_seeds} give other numbers from run to run"
    if evidence.first_only:
        return ruled_out(NAME, f"{varies}, but only the first run of a process is different")
    for name, what in (
        ("zero-fill", "where new memory is filled with 0"),
        ("first-config", "without autotuning"),
    ):
        if evidence.cures(name):
            return ruled_out(NAME, f"{varies}, but not {what}")
    wide = evidence.wide
    if wide is None:
        return untested(
            NAME, f"{varies}; whether by more than rounding is not known: {evidence.why_not_wide}"
        )
    if wide.rounding:
        return ruled_out(NAME, f"{varies}, but by rounding: {wide.said}")
    told = [varies, f"{wide.said}: that is no rounding"]
    told += [
        f"with {name.replace('-', ' ')} it is gone"
        for name in ("one-thread", "deterministic")
        if evidence.cures(name)
    ]
    return supported(NAME, len(evidence.varying) / len(evidence.repeats), *told)
