"""Numerical instability: one side loses far more digits than the inputs make it."""

from __future__ import annotations

import math

from repro.diagnose.elements import Element
from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested
from repro.ui import count

NAME = "numerical instability"
ADVICE = "use a form that does not cancel, or sum in a wider type, on the side that is named"
WORSE = 16.0
"""Times that one side must be less accurate than the other."""
BEYOND_INPUTS = 32.0
"""Times that it must be further from the truth than rounding of the inputs alone can move that."""
MANY = 256.0
"""Units in the last place that count as many, where nothing is known of the inputs."""
CANCELS = 1024.0
"""Ten bits lost in one subtraction."""


def weigh(evidence: Evidence) -> Cause:
    """Hold each failing element against float64, and look for steps that cancel."""
    if not evidence.compares:
        return ruled_out(NAME, "the failing trials compare no numbers")
    if not evidence.probes:
        return untested(NAME, evidence.missing.get("probe", "no trial was looked into"))
    if evidence.out_of_sight:
        return untested(NAME, evidence.out_of_sight)
    bad = [each for each in evidence.elements if unstable(each)]
    cancels = _cancelling(evidence)
    if bad:
        worst = max(bad, key=_loss)
        sides = sorted({_worse(each) for each in bad})
        told = [
            f"at {len(bad)} {evidence.of_elements} the {' and the '.join(sides)}"
            " side is far less"
            f" accurate than the other: up to {_loss(worst):.3g} ulp, against {_gain(worst):.3g}",
            *cancels,
        ]
        if evidence.wide:
            told.append(evidence.wide.said)
        return supported(NAME, len(bad) / len(evidence.elements), *told)
    known = [each for each in evidence.elements if each.precision.truth is not None]
    other = [each for each in evidence.elements if each.at_jump or each.wrong_gradient]
    if other and len(other) == len(evidence.elements):
        return ruled_out(NAME, f"all {count(len(other), 'failing element')} have another reason")
    if not known and evidence.elements:
        return untested(NAME, "no failing element could be recomputed in float64", *cancels)
    return ruled_out(
        NAME, f"neither side is far less accurate than the other at {count(len(known), 'failing element')}"
    )


def unstable(element: Element) -> bool:
    """Whether one side is far less accurate than the other, for no other reason that is known."""
    actual, expected = element.precision.actual_ulp, element.precision.expected_ulp
    if actual is None or expected is None or not element.finite:
        return False
    if element.at_jump or element.wrong_gradient or element.wrong_function:
        return False
    return max(actual, expected) >= max(_many(element), WORSE * min(actual, expected))


def _many(element: Element) -> float:
    """Units in the last place that no stable formula loses.

    Sums of thousands of terms lose some tens of times what rounding of their terms makes them lose. One unit
    is the least that rounding of inputs counts as.
    """
    inputs = element.precision.inputs_ulp
    return MANY if inputs is None else BEYOND_INPUTS * max(1.0, inputs)


def _loss(element: Element) -> float:
    return max(element.precision.actual_ulp or 0.0, element.precision.expected_ulp or 0.0)


def _gain(element: Element) -> float:
    return min(element.precision.actual_ulp or 0.0, element.precision.expected_ulp or 0.0)


def _worse(element: Element) -> str:
    actual, expected = element.precision.actual_ulp or 0.0, element.precision.expected_ulp or 0.0
    return "actual" if actual > expected else "expected"


def _cancelling(evidence: Evidence) -> list[str]:
    """The step that loses most in a subtraction."""
    steps = [step for probe in evidence.probes.values() for step in probe.steps if step.cancellation]
    if not steps:
        return []
    worst = max(steps, key=lambda step: step.cancellation or 0.0)
    times = worst.cancellation or 0.0
    if times < CANCELS:
        return []
    bits = f"{math.log2(times):.0f} bits" if math.isfinite(times) else "all bits"
    return [f"step {worst.n}, {worst.op}, cancels: inputs up to {times:.3g} times its result ({bits})"]
