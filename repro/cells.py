"""Cells: the points of the matrix, and why some points are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256

from repro.config import Matrix
from repro.config.problems import listing, nearest
from repro.config.product import Combination, combine
from repro.errors import UsageError
from repro.stacks import Stacks, stacks

_UNSAFE = re.compile(r"[^A-Za-z0-9_.=]")
_LONGEST_VARIABLE = 48


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One point of the matrix: frozen versions and environment.

    Args:
        python: minor version, such as "3.12".
        torch: release, such as "2.11.0".
        triton: release that runs in the cell.
        cuda: build of torch, such as "cu130", or "cpu".
        pinned_triton: release that torch pins; another `triton` makes the cell a crossed one.
        ptxas: release of `nvidia-cuda-nvcc-cu12` whose ptxas Triton calls, or None for the bundled one.
        env: environment variables, sorted by name.
        packages: further pip requirements that these versions need (such as "numpy<2").
    """

    python: str
    torch: str
    triton: str
    cuda: str
    pinned_triton: str
    ptxas: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    packages: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Readable and stable: `torch2.11.0-triton3.6.0-cu130-py312`, then ptxas and environment."""
        parts = [f"torch{self.torch}", f"triton{self.triton}", self.cuda, "py" + self.python.replace(".", "")]
        if self.ptxas is not None:
            parts.append(f"ptxas{self.ptxas}")
        parts += [_readable(f"{name}={value}") for name, value in self.env]
        return "-".join(parts)

    @property
    def crossed(self) -> bool:
        """Whether its triton or ptxas is not the stack's own."""
        return self.triton != self.pinned_triton or self.ptxas is not None

    @property
    def on_gpu(self) -> bool:
        """Whether its torch is a CUDA build; otherwise kernels run under Triton's interpreter."""
        return self.cuda != "cpu"


def _readable(variable: str) -> str:
    """`NAME=value` for an id; what an id cannot hold is replaced, and a hash keeps two values apart."""
    plain = _UNSAFE.sub("_", variable)[:_LONGEST_VARIABLE]
    return plain if plain == variable else f"{plain}_{sha256(variable.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, kw_only=True)
class Excluded:
    """A cell that is left out.

    Args:
        cell: what it would have been.
        reason: the rule's reason, or why it cannot exist.
    """

    cell: Cell
    reason: str


@dataclass(frozen=True, kw_only=True)
class Expansion:
    """What a profile stands for, oldest stack first.

    Args:
        cells: what runs; their ids differ.
        excluded: what does not, and why.
        reasons: why `include` rules added cells, by cell id.
    """

    cells: tuple[Cell, ...]
    excluded: tuple[Excluded, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)


def expand(matrix: Matrix, profile: str) -> Expansion:
    """The cells of a profile.

    Args:
        matrix: as loaded.
        profile: name of one of its profiles.

    Raises:
        UsageError: when there is no such profile.
    """
    if profile not in matrix.profiles:
        raise UsageError(
            f"there is no profile `{profile}` in {matrix.path}",
            next_step=f"take one of {listing(matrix.profiles)}",
        )
    cells: list[Cell] = []
    excluded: list[Excluded] = []
    reasons: dict[str, str] = {}
    for found in combine(matrix.profiles[profile], stacks())[0]:
        cell = _cell(found.combination, stacks())
        if found.why_out:
            excluded.append(Excluded(cell=cell, reason=found.why_out))
            continue
        cells.append(cell)
        if found.why_in:
            reasons[cell.id] = found.why_in
    return Expansion(cells=tuple(cells), excluded=tuple(excluded), reasons=reasons)


def _cell(combination: Combination, known: Stacks) -> Cell:
    return Cell(
        python=combination.python,
        torch=combination.torch,
        triton=combination.triton,
        cuda=combination.build,
        pinned_triton=known.torch[combination.torch].triton,
        ptxas=combination.ptxas,
        env=combination.env,
        packages=known.requirements(combination.triton, combination.build),
    )


def select(cells: Iterable[Cell], globs: Sequence[str]) -> tuple[Cell, ...]:
    """The cells whose id matches any of the globs, in their order; all of them without a glob.

    Raises:
        UsageError: when a glob matches no cell.
    """
    every = tuple(cells)
    for glob in globs:
        if not any(fnmatchcase(cell.id, glob) for cell in every):
            raise _no_match(glob, [cell.id for cell in every])
    if not globs:
        return every
    return tuple(cell for cell in every if any(fnmatchcase(cell.id, glob) for glob in globs))


def _no_match(glob: str, ids: Sequence[str]) -> UsageError:
    near = nearest(glob.replace("*", ""), ids) or list(ids[:3])
    rule = f"a glob has to match a cell's whole id; the nearest are {listing(near)}"
    return UsageError(
        f"no cell matches `{glob}`",
        why=rule if near else "there are no cells at all",
        next_step="`repro plan --only '*'` lists every cell; put a `*` at the end to match a prefix"
        if ids
        else "leave --only out, and see what the exclude rules in matrix.yaml leave",
    )


def newest_released(cells: Sequence[Cell]) -> Cell:
    """The newest cell that is as it was released, with no environment of its own; else the newest one."""
    plain = [cell for cell in cells if not cell.crossed and not cell.env]
    return (plain or list(cells))[-1]
