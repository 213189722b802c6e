"""An argument outside a function's domain: a NaN or an infinity out of finite, moderate numbers."""

from __future__ import annotations

from collections.abc import Iterator

from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested
from repro.inspect import Probe, Step

NAME = "argument outside a function's domain"
LARGE = 1e18
"""Beyond it a float32 overflows within one product, which is another cause."""


def weigh(evidence: Evidence) -> Cause:
    """Find the first step of each failing trial that is not finite although what came before it is."""
    strange = [each for each in evidence.elements if not each.finite]
    if not evidence.probes:
        return untested(NAME, evidence.missing.get("probe", "no trial was looked into"))
    if not strange:
        return ruled_out(NAME, "no failing element is NaN or infinite")
    culprits = {seed: step for seed, probe in evidence.probes.items() if (step := first_strange(probe))}
    if not culprits:
        return untested(
            NAME, f"{len(strange)} failing elements are not finite, but no step is seen to begin it"
        )
    explained = [each for each in strange if each.seed in culprits]
    ops = sorted({f"{step.op} ({step.phase}, step {step.n})" for step in culprits.values()})
    if any(_overflowed(evidence.probes[seed], step) for seed, step in culprits.items()):
        return ruled_out(
            NAME, f"the first step that is not finite, {ops[0]}, comes after numbers beyond {LARGE:.0e}"
        )
    return supported(
        NAME,
        len(explained) / len(evidence.elements),
        f"{len(strange)} of {len(evidence.elements)} failing elements are NaN or infinite",
        f"the first step that is not finite is {', '.join(ops)}; all before it is finite and below"
        f" {LARGE:.0e}",
        *(note for step in culprits.values() if (note := step.note)),
    )


def first_strange(probe: Probe) -> Step | None:
    """The first step with a NaN or an infinity, apart from memory that nobody wrote to yet."""
    return next(_strange(probe), None)


def _strange(probe: Probe) -> Iterator[Step]:
    for step in probe.steps:
        if (step.nan or step.inf) and "empty" not in step.op:
            yield step


def _overflowed(probe: Probe, culprit: Step) -> bool:
    before = [step.largest or 0.0 for step in probe.steps if step.n < culprit.n and "empty" not in step.op]
    return culprit.inf > 0 and max(before, default=0.0) > LARGE
