"""Versions as candidates: releases of the whole stack, or torch, triton or ptxas alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from repro.bisect.lines import Candidate, VersionLine
from repro.cells import Cell, newest_released
from repro.config.problems import listing, nearest
from repro.errors import UsageError
from repro.stacks import Stacks, stacks, version
from repro.subject import Subject

AXES = ("release", "triton", "torch", "ptxas")

_OF_CELL: Mapping[str, Callable[[Cell], str | None]] = {
    "release": lambda cell: cell.torch,
    "torch": lambda cell: cell.torch,
    "triton": lambda cell: cell.triton,
    "ptxas": lambda cell: cell.ptxas,
}


def version_line(
    axis: str, cells: Sequence[Cell], subject: Subject, *, old: str | None = None, new: str | None = None
) -> VersionLine:
    """Every known version of an axis from `old` to `new`, in cells that are otherwise alike.

    Args:
        axis: one of `AXES`.
        cells: of the profile. The newest one that is no crossed cell gives all other versions; their
            oldest and newest version are the ends where none are named.
        subject: code under test.
        old, new: versions; both included.

    Raises:
        UsageError: an unknown version, ends in the wrong order, or fewer than two versions.
    """
    known, base = stacks(), newest_released(cells)
    names = _between(axis, _ends(axis, cells, known, old, new), known)
    candidates, left_out = [], []
    for name in names:
        cell = _cell(axis, name, base, known)
        why = known.impossible(
            python=cell.python, torch=cell.torch, triton=cell.triton, build=cell.cuda, ptxas=cell.ptxas
        )
        if why:
            left_out.append((name, why))
        else:
            candidates.append(Candidate(name=name, label=_label(axis, cell), cell=cell))
    if len(candidates) < 2:
        raise _too_few(axis, known, left_out[0][1] if left_out else "a search needs an old and a new one")
    return VersionLine(axis=axis, candidates=candidates, subject=subject, left_out=left_out)


def _cell(axis: str, name: str, base: Cell, known: Stacks) -> Cell:
    if axis == "ptxas":
        return replace(base, ptxas=name)
    if axis == "triton":
        return crossed(base, known, triton=name)
    release = known.torch[name]
    build = "cpu" if base.cuda == "cpu" else release.default
    return crossed(base, known, torch=name, cuda=build, triton=release.triton if axis == "release" else None)


def crossed(
    base: Cell, known: Stacks, *, torch: str | None = None, cuda: str | None = None, triton: str | None = None
) -> Cell:
    """A cell with other versions, and with the packages that those need."""
    torch, triton, cuda = torch or base.torch, triton or base.triton, cuda or base.cuda
    return replace(
        base,
        torch=torch,
        triton=triton,
        cuda=cuda,
        pinned_triton=known.torch[torch].triton,
        packages=known.requirements(triton, cuda),
    )


def _label(axis: str, cell: Cell) -> str:
    words = {
        "release": f"torch {cell.torch} with triton {cell.triton}",
        "torch": f"torch {cell.torch}",
        "triton": f"triton {cell.triton}",
        "ptxas": f"ptxas {cell.ptxas}",
    }
    return words[axis]


# Ends ------------------------------------------------------------------------------------------------------


def _known(axis: str, known: Stacks) -> tuple[str, ...]:
    return known.known("torch" if axis == "release" else axis)


def _ends(
    axis: str, cells: Sequence[Cell], known: Stacks, old: str | None, new: str | None
) -> tuple[str, str]:
    there = {name for cell in cells if (name := _OF_CELL[axis](cell)) is not None}
    if axis == "ptxas" and len(there) < 2:
        there = set(_known(axis, known))
    found = sorted(there, key=version)
    first, last = (_check(axis, end, known) if end else None for end in (old, new))
    return first or found[0], last or found[-1]


def _check(axis: str, name: str, known: Stacks) -> str:
    names = _known(axis, known)
    exact = known.newest_ptxas(name) if axis == "ptxas" else name
    if exact in names:
        return exact
    near = nearest(name, names)
    raise UsageError(
        f"axis {axis} has no version `{name}`",
        why=f"the nearest are {listing(near)}" if near else f"it goes from {names[0]} to {names[-1]}",
        next_step="a newer release is a row in repro/stacks.yaml",
    )


def _between(axis: str, ends: tuple[str, str], known: Stacks) -> list[str]:
    first, last = map(version, ends)
    if first == last:
        raise _too_few(axis, known, f"both ends are {ends[0]}")
    if first > last:
        raise UsageError(
            f"--old {ends[0]} is newer than --new {ends[1]}",
            why="a search goes from an old to a new version",
            next_step=f"--old {ends[1]} --new {ends[0]}",
        )
    return [name for name in _known(axis, known) if first <= version(name) <= last]


def _too_few(axis: str, known: Stacks, why: str) -> UsageError:
    return UsageError(
        f"axis {axis} has fewer than two versions to choose from",
        why=why,
        next_step=f"name both ends: --old and --new, from {listing(_known(axis, known))}",
    )
