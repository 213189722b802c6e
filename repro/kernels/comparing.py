"""Two cells' kernels side by side: the first stage at which they differ, and by what."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from repro.kernels.artefacts import STAGES, Kernel
from repro.kernels.counting import Counts, count_ptx, count_sass, differing, registers
from repro.kernels.normal import normal

_CONTEXT = 1
_LINES = 400
"""Of a difference between two texts, at most."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One kernel in two cells.

    Args:
        name: of the kernel.
        ours, theirs: the kernel on either side; None where a side has none like it.
        stages: stages that both have, in order, and whether they are equal once normalised.
    """

    name: str
    ours: Kernel | None
    theirs: Kernel | None
    stages: Sequence[tuple[str, bool]]

    @property
    def identical(self) -> bool:
        """Whether every stage that both have is equal; False where one side has no such kernel."""
        return bool(self.stages) and all(equal for _, equal in self.stages)

    @property
    def first_difference(self) -> str | None:
        """The first stage that is not equal."""
        return next((stage for stage, equal in self.stages if not equal), None)

    @property
    def equal_again(self) -> list[str]:
        """Stages that are equal although an earlier one is not: what differed came to nothing."""
        if self.first_difference is None:
            return []
        later = [stage for stage, _ in self.stages].index(self.first_difference)
        return [stage for stage, equal in self.stages[later:] if equal]

    @property
    def facts(self) -> dict[str, tuple[Any, Any]]:
        """Metadata that differ: warps, stages, shared memory, versions."""
        a, b = (kernel.facts if kernel is not None else {} for kernel in (self.ours, self.theirs))
        names = dict.fromkeys((*a, *b))
        return {name: (a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name)}

    def counts(self) -> list[tuple[str, str, str, int, int]]:
        """Stage, kind, instruction and both counts, of those that differ."""
        if self.ours is None or self.theirs is None:
            return []
        ours, theirs = counted(self.ours), counted(self.theirs)
        return [
            (stage, *row)
            for stage in ours
            if stage in theirs
            for row in differing(ours[stage], theirs[stage])
        ]

    def difference(self, stage: str) -> list[str]:
        """A unified diff of one stage, normalised."""
        if self.ours is None or self.theirs is None:
            return []
        lines = difflib.unified_diff(
            _lines(self.ours, stage), _lines(self.theirs, stage), "A", "B", lineterm="", n=_CONTEXT
        )
        return list(lines)[:_LINES]


def compare(ours: Sequence[Kernel], theirs: Sequence[Kernel]) -> list[Comparison]:
    """Pair the kernels of two cells and compare each pair.

    A name may have several kernels (types, autotuned configurations): those whose source (TTIR) is equal
    belong together, then those with equal metadata, then those that are left, in order.
    """
    found = []
    for name in sorted({kernel.name for kernel in (*ours, *theirs)}):
        a = [kernel for kernel in ours if kernel.name == name]
        b = [kernel for kernel in theirs if kernel.name == name]
        found += [_compared(name, one, other) for one, other in _pairs(a, b)]
    return found


def counted(kernel: Kernel) -> dict[str, Counts]:
    """Counts of a kernel's PTX and, where it is there, its machine code."""
    counts: dict[str, Counts] = {}
    if "ptx" in kernel.stages:
        counts["ptx"] = count_ptx(_lines(kernel, "ptx"))
    if "sass" in kernel.stages:
        counts["sass"] = count_sass(_lines(kernel, "sass"))
    return counts


def resources(kernel: Kernel) -> dict[str, Any]:
    """What a kernel takes: registers a thread, spills, shared memory, warps; None where it is not known."""
    sass = kernel.stages.get("sass", "")
    counts = counted(kernel)
    last = counts.get("sass", counts.get("ptx"))
    spills = None if last is None else last.get("spill", Counter()).total()
    return {**kernel.facts, "registers": registers(sass), "spills": spills}


def _pairs(ours: list[Kernel], theirs: list[Kernel]) -> list[tuple[Kernel | None, Kernel | None]]:
    pairs: list[tuple[Kernel | None, Kernel | None]] = []
    for like in (_same_source_and_facts, _same_source, _same_facts, _any):
        for one in list(ours):
            other = next((other for other in theirs if like(one, other)), None)
            if other is not None:
                ours.remove(one)
                theirs.remove(other)
                pairs.append((one, other))
    return [*pairs, *((one, None) for one in ours), *((None, other) for other in theirs)]


def _same_source_and_facts(one: Kernel, other: Kernel) -> bool:
    return _same_source(one, other) and _same_facts(one, other)


def _same_source(one: Kernel, other: Kernel) -> bool:
    return _lines(one, "ttir") == _lines(other, "ttir")


def _same_facts(one: Kernel, other: Kernel) -> bool:
    names = ("num_warps", "num_stages", "num_ctas", "shared")
    return all(one.metadata.get(name) == other.metadata.get(name) for name in names)


def _any(one: Kernel, other: Kernel) -> bool:
    return True


def _compared(name: str, ours: Kernel | None, theirs: Kernel | None) -> Comparison:
    stages: list[tuple[str, bool]] = []
    if ours is not None and theirs is not None:
        both = [stage for stage in STAGES if stage in ours.stages and stage in theirs.stages]
        stages = [(stage, _lines(ours, stage) == _lines(theirs, stage)) for stage in both]
    return Comparison(name=name, ours=ours, theirs=theirs, stages=stages)


def _lines(kernel: Kernel, stage: str) -> list[str]:
    return list(_normalised(stage, kernel.stages.get(stage, "")))


@lru_cache(maxsize=256)
def _normalised(stage: str, text: str) -> tuple[str, ...]:
    return tuple(normal(stage, text))
