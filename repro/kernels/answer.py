"""Kernels and their comparison, as plain values and as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from repro import ui
from repro.kernels.artefacts import Kernel
from repro.kernels.comparing import Comparison, counted, resources
from repro.kernels.running import Compiled


def to_json(sides: Sequence[Compiled], compared: Sequence[Comparison]) -> dict[str, Any]:
    """All of it; the code itself lies in each kernel's folder."""
    return {
        "cells": [_side(side) for side in sides],
        "identical": bool(compared) and all(one.identical for one in compared) if len(sides) > 1 else None,
        "compared": [_comparison(one) for one in compared],
    }


def _side(side: Compiled) -> dict[str, Any]:
    return {
        "cell": side.cell,
        "outcome": side.outcome,
        "kernels": [_kernel(kernel) for kernel in side.kernels],
        "profile": list(side.profile),
        "nsight": list(side.nsight),
        "why_no_profile": list(side.why_no_profile),
        "refused": dict(side.refused),
        "without_text": _without_text(side),
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "folder": kernel.folder.name,
        "stages": list(kernel.stages),
        "resources": resources(kernel),
        "counts": counted(kernel),
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    return {
        "name": one.name,
        "identical": one.identical,
        "first_difference": one.first_difference,
        "equal_again": one.equal_again,
        "stages": [{"stage": stage, "equal": equal} for stage, equal in one.stages],
        "facts": {name: list(pair) for name, pair in one.facts.items()},
        "counts": [
            {"stage": stage, "kind": kind, "instruction": instruction, "a": a, "b": b}
            for stage, kind, instruction, a, b in one.counts()
        ],
        "only_in": "a" if one.theirs is None else "b" if one.ours is None else None,
        "folders": [kernel.folder.name if kernel else None for kernel in (one.ours, one.theirs)],
    }


def _without_text(side: Compiled) -> int:
    return sum(kernel.without_text for kernel in side.kernels)


def untold(side: Compiled) -> str:
    """What to do about machine code that has no text, or "" where there is none."""
    count = _without_text(side)
    if not count:
        return ""
    return (
        f"{side.cell}: the machine code of {count} of {ui.count(len(side.kernels), 'kernel')} has no text:"
        " no nvdisasm there; --nvdisasm PROGRAM has one of this machine read it, outside of any container"
    )


def said(compared: Sequence[Comparison]) -> str:
    """The answer in one sentence."""
    if not compared:
        return "no kernel was compiled on either side"
    different = [one for one in compared if not one.identical]
    if not different:
        last = {one.stages[-1][0] for one in compared}
        end = "machine code" if last == {"sass"} else f"what is there ({', '.join(sorted(last))} at last)"
        return f"identical: {len(compared)} of {ui.count(len(compared), 'kernel')}, down to {end}"
    differ = "differs" if len(different) == 1 else "differ"
    told = f"{len(different)} of {ui.count(len(compared), 'kernel')} {differ}"
    in_code = sum("sass" not in one.equal_again for one in different)
    if in_code == len(different):
        return told
    return f"{told}, {in_code or 'none'} of them in machine code"


def lines(one: Comparison) -> Iterator[str]:
    """One kernel's comparison."""
    if one.ours is None or one.theirs is None:
        yield f"{one.name}: compiled on side {'B' if one.ours is None else 'A'} only"
        return
    if one.identical:
        yield f"{one.name}: identical ({', '.join(stage for stage, _ in one.stages)})"
        return
    again = one.equal_again
    yield f"{one.name}: differs from {one.first_difference} on" + (
        f", and is equal again in {', '.join(again)}" if again else ""
    )
    for name, (a, b) in one.facts.items():
        yield f"  {name}: {a} / {b}"
    a_takes, b_takes = resources(one.ours), resources(one.theirs)
    for name in ("registers", "spills"):
        if a_takes[name] != b_takes[name]:
            yield f"  {name}: {a_takes[name]} / {b_takes[name]}"
    for stage, kind, instruction, a, b in one.counts():
        yield f"  {stage} {kind}: {instruction} {a} / {b}"
