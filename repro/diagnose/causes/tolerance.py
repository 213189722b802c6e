"""Tolerances too tight: ordinary rounding, now and then just beyond what the test allows."""

from __future__ import annotations

from statistics import median

from repro.diagnose.causes.instability import unstable
from repro.diagnose.elements import Element
from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested
from repro.diagnose.tolerances import looser

NAME = "tolerance too tight"
ADVICE = "derive the tolerance from the number of terms and their magnitude"
BEYOND = 10.0
"""Times the tolerance up to which an error counts as just beyond it."""


def weigh(evidence: Evidence) -> Cause:
    """See whether failing trials' errors go on from those of passing ones, and are rounding on both sides."""
    if not evidence.compares:
        return ruled_out(NAME, "the failing trials compare nothing with a tolerance")
    ratios = evidence.finite_ratios
    if not ratios:
        return ruled_out(NAME, "the failing elements are no finite numbers")
    if evidence.elements and not any(_ordinary(each) for each in evidence.elements):
        return ruled_out(NAME, "each failing element has another reason than ordinary rounding")
    middle, clean = median(ratios), evidence.clean_ratio
    told = (
        f"failing trials' errors are {min(ratios):.3g} to {max(ratios):.3g} times the tolerance (median"
        f" {middle:.3g})"
    )
    if clean is not None:
        told += f", those of passing ones up to {clean:.3g} times"
    if middle > BEYOND or (clean is not None and clean > 0 and not evidence.goes_on):
        return ruled_out(NAME, f"{told}: that is a class of its own")
    wide = evidence.wide
    if wide is None:
        return untested(NAME, told, evidence.why_not_wide)
    if not wide.rounding:
        return ruled_out(NAME, f"{told}, but it is no rounding: {wide.said}")
    share = _share(evidence)
    return supported(NAME, share, told, f"{wide.said}: it is rounding", *looser(evidence))


def _ordinary(element: Element) -> bool:
    """Whether an element differs as rounding makes it, for no other reason that is known."""
    odd = element.at_jump or element.wrong_gradient or element.wrong_function or unstable(element)
    return element.finite and not odd


def _share(evidence: Evidence) -> float:
    if not evidence.elements:
        return 1.0
    return sum(_ordinary(each) for each in evidence.elements) / len(evidence.elements)
