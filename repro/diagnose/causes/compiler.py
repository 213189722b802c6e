"""Triton, its compiler, ptxas, their switches, and contraction to fused multiply-add."""

from __future__ import annotations

from repro.diagnose.evidence import CellRate, Evidence, Factor
from repro.diagnose.model import Cause, ruled_out, supported, untested
from repro.stats import benjamini_hochberg

NAME = "compiler, its switches or FMA contraction"
FDR = 0.05


def weigh(evidence: Evidence) -> Cause:
    """Hold versions and switches of compilers against each other, on the same seeds."""
    switches = [each for each in evidence.factors if each.compiler]
    others = [each for each in evidence.cells if each.common]
    chances = [each.chance for each in switches] + [each.chance for each in others]
    if not chances:
        return untested(
            NAME,
            evidence.missing.get(
                "compiler", "only one version was run, and no switch of the compiler was tried"
            ),
            "next: repro matrix, repro bisect",
        )
    tried: list[Factor | CellRate] = [*switches, *others]
    matter = [each for each, q in zip(tried, benjamini_hochberg(chances), strict=True) if q <= FDR]
    if matter:
        return supported(NAME, max(map(_explains, matter)), *map(_said, matter))
    told = []
    if others:
        same = sum(each.differ == 0 for each in others)
        told.append(
            f"in {same} of {len(others)} other cells exactly the same seeds fail; in none is the rate another"
        )
    if switches:
        told.append(f"no difference by {', '.join(each.name for each in switches)}")
    return ruled_out(NAME, *told)


def _explains(what: Factor | CellRate) -> float:
    """The share of the failures that comes or goes."""
    if isinstance(what, CellRate):
        return 1.0 if not what.failed else 0.5
    plain, changed = what.plain[0] / what.plain[1], what.changed[0] / what.changed[1]
    return abs(plain - changed) / max(plain, changed)


def _said(what: Factor | CellRate) -> str:
    if isinstance(what, CellRate):
        return (
            f"{what.cell}: {what.failed} of {what.trials} fail; {what.differ} of {what.common} common seeds"
            f" differ (p = {what.chance:.1g})"
        )
    return (
        f"with {what.name}, {what.changed[0]} of {what.changed[1]} runs fail, and {what.plain[0]} of"
        f" {what.plain[1]} without it (p = {what.chance:.1g})"
    )
