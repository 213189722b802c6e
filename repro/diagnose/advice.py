"""What to do about a cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from repro.diagnose.causes import (
    autotuning,
    compiler,
    domain,
    draw,
    formula,
    gradients,
    instability,
    jump,
    memory,
    race,
    summation,
    tolerance,
)
from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, Verdict
from repro.stats import clean_runs_needed, wilson

ADVICE: Mapping[str, str] = {
    jump.NAME: "neither side is wrong: keep the test's random inputs away from the jumps, or compare there"
    " with either one-sided derivative, or compute the coordinates on both sides by the same operations",
    formula.NAME: "mend the side that the finite differences speak against; repro inspect names the step",
    domain.NAME: "clamp the argument before the step that is named, or treat the ends of its domain apart",
    gradients.NAME: "rescale between the steps, or compare in a wider type",
    summation.NAME: "fix the order of the sum, or allow what the order may change",
    race.NAME: "look for writes that overlap: a missing atomic or barrier, two programs with one output",
    memory.NAME: "write every element before it is read: `other=` of masked loads, zeros in place of empty",
    autotuning.NAME: "tell the autotuner what it must restore or zero: restore_value, reset_to_zero",
    compiler.NAME: "repro bisect names the version; repro kernels shows what changed in the code",
    tolerance.NAME: "derive the tolerance from the number of terms and their magnitude",
    instability.NAME: "use a form that does not cancel, or sum in a wider type, on the side that is named",
    draw.NAME: "handle the value that is named, or say in the test that it is out of bounds",
}


def advise(evidence: Evidence, causes: Sequence[Cause]) -> list[str]:
    """What to do, for each cause that is supported, and how to see that it helped."""
    told = [f"{cause.name}: {ADVICE[cause.name]}" for cause in causes if cause.verdict is Verdict.SUPPORTED]
    low = wilson(evidence.failed, evidence.trials).low
    if told and 0.0 < low < 1.0:
        told.append(
            f"after the fix: repro verify-fix; {clean_runs_needed(low)} clean runs rule out the rate seen"
            " so far, with 95 %"
            " confidence"
        )
    return told
