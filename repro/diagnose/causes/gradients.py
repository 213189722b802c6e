"""Exploding or vanishing gradients: numbers that grow or shrink from step to step until they are useless."""

from __future__ import annotations

import math

from repro.diagnose.causes.domain import LARGE, first_strange, overflowed
from repro.diagnose.elements import Element
from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested
from repro.inspect import Probe

NAME = "exploding or vanishing gradients"
ADVICE = "rescale between the steps, or compare in a wider type"
TINY = 1.2e-38
"""The smallest normal float32."""


def weigh(evidence: Evidence) -> Cause:
    """Follow the largest magnitude from step to step, and see whether failing elements over- or underflow."""
    if not evidence.probes:
        return untested(NAME, evidence.missing.get("probe", "no trial was looked into"))
    if evidence.out_of_sight:
        return untested(NAME, evidence.out_of_sight)
    spans = {seed: _span(probe) for seed, probe in evidence.probes.items()}
    low, high = min(span[0] for span in spans.values()), max(span[1] for span in spans.values())
    told = f"the largest magnitude of a step is between {low:.2g} and {high:.2g}"
    over = [each for each in evidence.elements if _over(evidence, each)]
    under = [each for each in evidence.elements if _under(each)]
    explained = len(over) + len(under)
    if not explained:
        return ruled_out(NAME, f"{told}; no failing element over- or underflows")
    if evidence.cured_where:
        return ruled_out(NAME, f"the failure is gone {evidence.cured_where}")
    parts = [f"{len(over)} {evidence.of_elements} overflow or are beyond {LARGE:.0e}"] if over else []
    if under:
        parts.append(f"{len(under)} {evidence.of_elements} vanish below {TINY:.1e}")
    wide = [evidence.wide.said] if evidence.wide else []
    return supported(NAME, explained / len(evidence.elements), told, *parts, *wide)


def _span(probe: Probe) -> tuple[float, float]:
    """The smallest and the largest of the steps' largest magnitudes."""
    sizes = [step.largest for step in probe.steps if step.largest and "empty" not in step.op]
    return (min(sizes), max(sizes)) if sizes else (0.0, 0.0)


def _over(evidence: Evidence, element: Element) -> bool:
    """Whether a value is beyond all reason, or is not finite after numbers that were."""
    values = [
        abs(value) for value in (element.precision.actual, element.precision.expected) if value is not None
    ]
    if any(math.isfinite(value) and value > LARGE for value in values):
        return True
    if all(math.isfinite(value) for value in values):
        return False
    probe = evidence.probes[element.seed]
    first = first_strange(probe, evidence.control)
    return overflowed(probe, first) if first is not None else _span(probe)[1] > LARGE


def _under(element: Element) -> bool:
    actual, expected = element.precision.actual, element.precision.expected
    if actual is None or expected is None or not element.finite or actual == expected:
        return False
    return min(abs(actual), abs(expected)) < TINY and _tiny_truth(element)


def _tiny_truth(element: Element) -> bool:
    truth = element.precision.truth
    return truth is not None and 0.0 < abs(truth) < TINY
