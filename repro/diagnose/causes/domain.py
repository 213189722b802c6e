"""An argument outside a function's domain: a NaN or an infinity out of finite, moderate numbers."""

from __future__ import annotations

from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested
from repro.inspect import Probe, Step
from repro.ui import count

NAME = "argument outside a function's domain"
ADVICE = "clamp the argument before the step that is named, or treat the ends of its domain apart"
LARGE = 1e18
"""Beyond it a float32 overflows within one product, which is another cause."""


def weigh(evidence: Evidence) -> Cause:
    """Find the first step of each failing trial that is not finite although what came before it is."""
    strange = [each for each in evidence.elements if not each.finite]
    if not evidence.probes:
        return untested(NAME, evidence.missing.get("probe", "no trial was looked into"))
    if not strange:
        return ruled_out(NAME, "no failing element is NaN or infinite")
    if evidence.cured_where:
        return ruled_out(NAME, f"the failure is gone {evidence.cured_where}")
    firsts = {seed: first_strange(probe, evidence.control) for seed, probe in evidence.probes.items()}
    culprits = {seed: step for seed, step in firsts.items() if step is not None}
    if not culprits:
        return untested(
            NAME, f"{count(len(strange), 'failing element')} are not finite, but no step is seen to begin it"
        )
    explained = [each for each in strange if each.seed in culprits]
    ops = sorted({f"{step.op} ({step.phase}, step {step.n})" for step in culprits.values()})
    if any(overflowed(evidence.probes[seed], step) for seed, step in culprits.items()):
        return ruled_out(
            NAME, f"the first step that is not finite, {ops[0]}, comes after numbers beyond {LARGE:.0e}"
        )
    return supported(
        NAME,
        len(explained) / len(evidence.elements),
        f"{len(strange)} {evidence.of_elements} are NaN or infinite",
        f"the first step that is not finite is {', '.join(ops)}; where a passing trial has none",
        *(note for step in culprits.values() if (note := step.note)),
    )


def first_strange(probe: Probe, control: Probe | None) -> Step | None:
    """The first step with a NaN or an infinity that a passing trial does not have at the same step.

    Memory that nobody wrote to yet does not count.
    """
    harmless = {(step.n, step.op) for step in control.steps if step.nan or step.inf} if control else set()
    for step in probe.steps:
        if (step.nan or step.inf) and "empty" not in step.op and (step.n, step.op) not in harmless:
            return step
    return None


def overflowed(probe: Probe, culprit: Step) -> bool:
    """Whether a step that is not finite is so because the numbers before it were too large already."""
    near = [step.largest or 0.0 for step in probe.steps if culprit.n - 2 <= step.n <= culprit.n]
    return culprit.inf > 0 and max(near, default=0.0) > LARGE
