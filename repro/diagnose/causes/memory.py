"""Memory that is read before anybody wrote to it."""

from __future__ import annotations

from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested

NAME = "uninitialised memory"
ADVICE = "write every element before it is read: `other=` of masked loads, zeros in place of empty"


def weigh(evidence: Evidence) -> Cause:
    """Fill new memory with NaN, which shows in what is compared, and with 0, which hides the failure."""
    poisoned, zeroed = evidence.cured("poison"), evidence.cured("zero-fill")
    if poisoned is None or zeroed is None:
        return untested(
            NAME, evidence.missing.get("interventions", "memory could not be filled before it is read")
        )
    if not evidence.touched("poison"):
        return ruled_out(NAME, "the test asks torch for no memory without content")
    shows = sum(_has_nan(shot.comparisons) for shot in evidence.switched["poison"])
    before = sum(_has_nan(shot.comparisons) for shot in evidence.baseline)
    told = (
        f"with NaN in new memory, {poisoned[2]} of {poisoned[3]} runs fail and {shows} compare NaN"
        f" ({before} of {len(evidence.baseline)} otherwise); with 0 in it, {zeroed[2]} of {zeroed[3]} fail"
        f" ({zeroed[0]} of {zeroed[1]} otherwise)"
    )
    if not shows > before:
        return ruled_out(NAME, told)
    if evidence.cures("zero-fill") or (zeroed[2] == 0 and evidence.varying):
        return supported(NAME, 1.0 - zeroed[2] / zeroed[3], told)
    return ruled_out(NAME, f"{told}: such memory is read, but that is not what makes the test fail")


def _has_nan(comparisons: object) -> bool:
    assert isinstance(comparisons, (list, tuple))
    return any(any(one.get("nan") or ()) for one in comparisons)
