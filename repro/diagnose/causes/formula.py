"""A wrong formula, or a wrong rule at the border: more digits do not help."""

from __future__ import annotations

from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested
from repro.ui import count

NAME = "wrong formula or border rule"
ADVICE = "mend the side that the finite differences speak against; repro inspect names the step"


def weigh(evidence: Evidence) -> Cause:
    """Look for a disagreement that stays in float64, and for gradients that are not their function's."""
    if not evidence.compares:
        return untested(NAME, "the failing trials compare no numbers that could be recomputed")
    if evidence.cured_where:
        return ruled_out(NAME, f"the failure is gone {evidence.cured_where}")
    finite = [each for each in evidence.elements if each.finite and each.seed not in evidence.varying]
    gradient = [each for each in finite if each.wrong_gradient]
    plain = [each for each in finite if not each.wrong_gradient and not each.hides_a_jump]
    function = [each for each in plain if each.wrong_function]
    explained = len(gradient) + len(function)
    if not explained:
        return _whole(evidence)
    of, told = evidence.of_elements, []
    if gradient:
        sides = " and the ".join(sorted({each.wrong_gradient for each in gradient}))
        told.append(
            f"at {len(gradient)} {of} the gradient of the {sides} side is not the derivative of that"
            " side's own"
            " function, by finite differences"
        )
    if function:
        told.append(f"at {len(function)} {of} both sides, computed in float64, differ as much as before")
    return supported(NAME, explained / len(evidence.elements), *told, *_wide(evidence))


def _wide(evidence: Evidence) -> list[str]:
    return [evidence.wide.said] if evidence.wide else []


def _whole(evidence: Evidence) -> Cause:
    """What the test as a whole does in float64."""
    wide = evidence.wide
    if wide is None:
        return untested(NAME, evidence.why_not_wide)
    if wide.rounding or not wide.failed:
        return ruled_out(NAME, f"{wide.said}: with more digits the two sides agree")
    if evidence.varying:
        return ruled_out(NAME, f"{wide.said}, but the same inputs do not always give the same numbers")
    if any(not each.finite for each in evidence.elements):
        return ruled_out(NAME, "the failing elements are no finite numbers")
    jumps = sum(each.at_jump for each in evidence.elements)
    if jumps:
        return ruled_out(
            NAME, f"{wide.said}, but {count(jumps, 'failing element')} lie where the derivative jumps"
        )
    hidden = sum(each.hides_a_jump for each in evidence.elements)
    if hidden:
        return untested(
            NAME,
            f"{wide.said}, but at {count(hidden, 'failing element')} it could not be measured whether the"
            " derivative jumps",
        )
    return supported(NAME, wide.failed / wide.run, f"{wide.said}: more digits do not help")
