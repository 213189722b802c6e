"""Points where the derivative does not exist: both sides are right, each on its own side."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from repro.diagnose.elements import Element
from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested
from repro.ui import count

NAME = "jump of the derivative"
ADVICE = (
    "neither side is wrong: keep the test's random inputs away from the jumps, or compare there"
    " with either one-sided derivative, or compute the coordinates on both sides by the same operations"
)


def weigh(evidence: Evidence) -> Cause:
    """Hold the failing elements of compared gradients against one-sided differences."""
    measured = [each for each in evidence.elements if _known(each)]
    if not measured:
        return _unmeasured(evidence)
    at = [each for each in measured if each.at_jump]
    if not at:
        return ruled_out(
            NAME,
            f"at none of {count(len(measured), 'failing element')} do the one-sided derivatives differ with"
            " both values between them",
        )
    told = [
        f"at {len(at)} {evidence.of_elements} the derivative from the left and from the"
        " right differ, and the compared values are one and the other, or between them",
        _example(at[0]),
        *_distances(at),
        *_rates(evidence),
    ]
    return supported(NAME, len(at) / len(evidence.elements), *told)


def _known(element: Element) -> bool:
    return any(each.jump is not None for each in element.derivatives)


def _unmeasured(evidence: Evidence) -> Cause:
    if evidence.missing.get("probe"):
        return untested(NAME, evidence.missing["probe"])
    if evidence.compares and evidence.out_of_sight:
        return untested(NAME, evidence.out_of_sight)
    if not evidence.elements:
        return ruled_out(NAME, "no tensor elements were compared and found to differ")
    if not any(each.finite for each in evidence.elements):
        return ruled_out(NAME, "the failing elements are no finite numbers")
    whys = {each.why for element in evidence.elements for each in element.derivatives if each.why}
    if all("no gradient" in why for why in whys):
        return ruled_out(NAME, "what fails to match is no gradient")
    return untested(NAME, "the one-sided derivatives could not be measured", *sorted(whys))


def _example(element: Element) -> str:
    one = next(each for each in element.derivatives if each.jump)
    return (
        f"seed {element.seed}, comparison {one.comparison}, element {list(one.element or ())}: left"
        f" {one.left:.6g}, right {one.right:.6g}; actual {one.actual:.6g} fits {one.actual_fits},"
        f" expected {one.expected:.6g} fits {one.expected_fits}"
    )


def _distances(elements: Sequence[Element]) -> list[str]:
    near = [each.jump.distance_ulp for each in elements if each.jump is not None]
    if not near:
        return []
    return [
        f"by the operator's adapter, the coordinates of {len(near)} of them lie {min(near):.3g} to"
        f" {max(near):.3g} ulp"
        f" (median {median(near):.3g}) from where the derivative jumps"
    ]


def _rates(evidence: Evidence) -> list[str]:
    if evidence.predicted_rate is None:
        return []
    return [
        f"from first principles {100 * evidence.predicted_rate:.2g} % of the trials should fail;"
        f" {evidence.failed} of {evidence.trials} did"
    ]
