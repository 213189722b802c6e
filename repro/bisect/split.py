"""A release changes several things at once: which of them carries the change?

Crossed cells tell: the newer stack with one part of the older one, and the other way round. Where no part
alone makes the difference, their interaction does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log

from repro import ui
from repro.bisect.evidence import side
from repro.bisect.lines import Candidate, VersionLine
from repro.bisect.trail import Trail
from repro.bisect.tryout import Counts
from repro.bisect.versions import crossed
from repro.cells import Cell
from repro.stacks import Stacks
from repro.store import Ledger

SURE = log(20.0)
"""A crossed cell belongs to a side of the change once its trials are this much likelier there."""


@dataclass(frozen=True, kw_only=True)
class Cross:
    """A cell between the two stacks.

    Args:
        part: what it takes from one of them alone: `torch`, `triton`, `cuda` or `ptxas`.
        new: whether that part is from the newer stack, and all else from the older one.
        cell: where it runs.
    """

    part: str
    new: bool
    cell: Cell


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A crossed cell that was tried.

    Args:
        cross: which one.
        counts: its trials.
        after: whether it behaves as the newer stack; None where that cannot be told.
        why: where it cannot be told, the reason.
    """

    cross: Cross
    counts: Counts
    after: bool | None
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Split:
    """What carries the change.

    Args:
        parts: those that do: alone each, or, where `interaction`, only together.
        interaction: no part alone makes the difference.
        judged: the cells behind it.
        said: one sentence.
    """

    parts: Sequence[str]
    interaction: bool
    judged: Sequence[Judged]
    said: str


def crosses(old: Cell, new: Cell, known: Stacks, bundled: Callable[[Cell], str | None]) -> list[Cross]:
    """The crossed cells that can exist between two stacks.

    Args:
        bundled: version of the ptxas inside a cell's triton wheel, as its trials recorded it.
    """
    found: list[Cross] = []
    for base, other, is_new in ((new, old, False), (old, new, True)):
        # The part is what differs from `base`: from the older stack in the newer one, and vice versa.
        if base.triton != other.triton:
            found.append(Cross(part="triton", new=is_new, cell=crossed(base, known, triton=other.triton)))
        if base.cuda != other.cuda and other.cuda in known.torch[base.torch].builds:
            found.append(Cross(part="cuda", new=is_new, cell=crossed(base, known, cuda=other.cuda)))
        found += _ptxas(base, other, is_new, known, bundled)
    return [cross for cross in found if _possible(cross.cell, known)]


def _ptxas(
    base: Cell, other: Cell, is_new: bool, known: Stacks, bundled: Callable[[Cell], str | None]
) -> list[Cross]:
    here, there = bundled(base), bundled(other)
    line = ".".join((there or "").split(".")[:2])
    release = known.newest_ptxas(line)
    if here == there or release not in known.ptxas or not base.on_gpu:
        return []
    return [Cross(part="ptxas", new=is_new, cell=replace(base, ptxas=release))]


def _possible(cell: Cell, known: Stacks) -> bool:
    return not known.impossible(
        python=cell.python, torch=cell.torch, triton=cell.triton, build=cell.cuda, ptxas=cell.ptxas
    )


def ptxas_of(ledger: Ledger) -> Callable[[Cell], str | None]:
    """Reads off the ledger which ptxas a cell's trials ran with."""

    def bundled(cell: Cell) -> str | None:
        facts = [environment.facts for environment in ledger.environments(cell.id)]
        return next((str(each["ptxas"]) for each in reversed(facts) if each.get("ptxas")), None)

    return bundled


def judge(trail: Trail, place: int, before: Counts, after: Counts, cross: Cross) -> Judged:
    """Try a crossed cell until it is clear on which side of the change it is.

    Args:
        trail: over a line of crossed cells.
        place: the cell's place on it.
        before, after: trials of the older and the newer stack.
    """
    most = trail.question.trials * 5
    while True:
        counts = trail.evidence.of(place)
        ratio = side(counts, before, after)
        if counts.rated and abs(ratio) >= SURE:
            return Judged(cross=cross, counts=counts, after=ratio > 0)
        if place in trail.evidence.findings:
            return Judged(cross=cross, counts=counts, after=None, why=trail.evidence.findings[place].message)
        if trail.over or counts.rated >= most:
            return Judged(
                cross=cross,
                counts=counts,
                after=None,
                why=f"not clear after {ui.count(counts.rated, 'trial')}",
            )
        trail.rate(place, 20)


def cross_line(line: VersionLine, found: Sequence[Cross]) -> VersionLine:
    """The crossed cells as a line of their own."""
    candidates = [Candidate(name=cross.cell.id, label=cross.cell.id, cell=cross.cell) for cross in found]
    return VersionLine(axis="crossed", candidates=candidates, subject=line.subject)


def conclude(judged: Sequence[Judged]) -> Split:
    """Which part carries the change, from the crossed cells that could be judged.

    With triton crossed both ways the four cells of torch and triton are complete: the newer stack with the
    older triton is also the older triton with the newer torch. ptxas is a part of triton's wheel, and the
    CUDA runtime a part of torch's.
    """
    old_triton, new_triton = _after(judged, "triton", new=False), _after(judged, "triton", new=True)
    if old_triton is None and new_triton is None:
        parts, interaction, said = [], False, "no crossed cell could tell torch from triton"
    elif not old_triton and not new_triton and None not in (old_triton, new_triton):
        parts, interaction = ["torch", "triton"], True
        said = "neither torch nor triton alone makes the difference: it takes both of the newer ones"
    else:
        parts, interaction = _alone(old_triton, new_triton), False
        said = f"the newer {' or the newer '.join(parts)} alone makes the difference"
    finer = [_finer(judged, inner, outer) for inner, outer in _INSIDE if outer in parts]
    said = "; ".join([said, *filter(None, finer)])
    parts += [inner for (inner, outer) in _INSIDE if outer in parts and _after(judged, inner, new=True)]
    return Split(parts=parts, interaction=interaction, judged=judged, said=said)


_INSIDE = (("ptxas", "triton"), ("cuda", "torch"))


def _after(judged: Sequence[Judged], part: str, *, new: bool) -> bool | None:
    found = (each.after for each in judged if each.cross.part == part and each.cross.new is new)
    return next(found, None)


def _alone(old_triton: bool | None, new_triton: bool | None) -> list[str]:
    """Parts that suffice: the newer torch does if the older triton changes nothing, and so on."""
    torch = old_triton if old_triton is not None else not new_triton
    triton = new_triton if new_triton is not None else not old_triton
    return [name for name, suffices in (("torch", torch), ("triton", triton)) if suffices]


def _finer(judged: Sequence[Judged], inner: str, outer: str) -> str:
    """What is known of the part inside a part."""
    with_old, with_new = _after(judged, inner, new=False), _after(judged, inner, new=True)
    if with_old is False or with_new:
        return f"within {outer} it is {inner}: the older {inner} takes it away, or the newer one brings it"
    if with_old or with_new is False:
        return f"within {outer} it is not {inner}"
    return ""
