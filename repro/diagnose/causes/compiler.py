"""Triton, its compiler, ptxas, their switches, and contraction to fused multiply-add."""

from __future__ import annotations

from repro.diagnose.evidence import CellRate, Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested
from repro.factors import Effect, Verdict
from repro.factors.known import NAMED, Needs
from repro.stats import benjamini_hochberg

NAME = "compiler, its switches or FMA contraction"
ADVICE = "repro bisect names the version; repro kernels shows what changed in the code"
FDR = 0.05


def weigh(evidence: Evidence) -> Cause:
    """Hold versions and switches of compilers against each other, on the same seeds."""
    switches = [each for each in evidence.factors if _switch(each) and each.verdict is not Verdict.UNTRIED]
    others = [each for each in evidence.cells if each.common]
    if not switches and not others:
        return untested(NAME, *_why(evidence), "next: repro matrix, repro bisect")
    q_values = benjamini_hochberg([each.chance for each in others])
    cells = [each for each, q in zip(others, q_values, strict=True) if q <= FDR]
    matter = [each for each in switches if each.verdict is Verdict.MATTERS]
    if cells or matter:
        shares = [*map(_share_of_cell, cells), *map(_share_of_switch, matter)]
        return supported(NAME, max(shares), *map(_cell, cells), *map(_effect, matter))
    told = []
    if others:
        same = sum(each.differ == 0 for each in others)
        told.append(
            f"in {same} of {len(others)} other cells exactly the same seeds fail; in none is the rate another"
        )
    return ruled_out(NAME, *told, *map(_effect, switches))


def _switch(effect: Effect) -> bool:
    return effect.factor.needs is Needs.COMPILER or effect.factor.what == NAMED


def _why(evidence: Evidence) -> list[str]:
    untried = [f"{each.factor.name}: {each.reason}" for each in evidence.factors if _switch(each)]
    return [
        evidence.missing.get("factors", "only one version was run, and no switch could be tried"),
        *untried,
    ]


def _share_of_cell(cell: CellRate) -> float:
    """The share of the failures that comes or goes."""
    return 1.0 if not cell.failed else 0.5


def _share_of_switch(effect: Effect) -> float:
    counts = [rate.failed for rate in (effect.without, effect.with_it) if rate is not None]
    return (max(counts) - min(counts)) / max(counts)


def _cell(cell: CellRate) -> str:
    return (
        f"{cell.cell}: {cell.failed} of {cell.trials} fail; {cell.differ} of {cell.common} common seeds"
        f" differ (p = {cell.chance:.1g})"
    )


def _effect(effect: Effect) -> str:
    assert effect.without is not None
    assert effect.with_it is not None
    return (
        f"with {effect.factor.name}, {effect.with_it.failed} of {effect.with_it.trials} seeds fail, and"
        f" {effect.without.failed} without it: it {effect.verdict.value} (p = {effect.p_value:.1g})"
    )
