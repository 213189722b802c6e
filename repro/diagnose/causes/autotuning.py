"""Autotuning: a kernel that adds to its output runs several times while it is timed."""

from __future__ import annotations

from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested

NAME = "autotuning"
ADVICE = "tell the autotuner what it must restore or zero: restore_value, reset_to_zero"


def weigh(evidence: Evidence) -> Cause:
    """Take the first configuration untimed, and see whether it is the first run of a process that fails."""
    counts = evidence.cured("first-config")
    if counts is None:
        return untested(
            NAME, evidence.missing.get("interventions", "the test was not run without autotuning")
        )
    calls = evidence.touched("first-config")
    if not calls:
        return ruled_out(NAME, "no autotuned kernel runs in this test")
    told = (
        f"{calls} calls of autotuned kernels; with the first configuration and no timing, {counts[2]} of"
        f" {counts[3]} runs fail ({counts[0]} of {counts[1]} otherwise)"
    )
    if not evidence.cures("first-config"):
        return ruled_out(NAME, told)
    more = []
    if evidence.first_only:
        more.append("a failing seed fails where it is the first of its process, and never after that")
    return supported(NAME, 1.0 - counts[2] / counts[3], told, *more)
