"""From a cell to the packages that are installed in it, the same ones in every engine.

Versions are resolved once, on this machine, by uv: an image build or a virtual environment then installs
exact pins without looking at dependencies. That is how a crossed triton gets past torch's own pin, how local
wheels reach a build that sees nothing of this machine, and why every builder makes the same image.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from repro.cells import Cell
from repro.engines import indexes as where
from repro.engines.indexes import Indexes
from repro.engines.pythons import look_at, uv_program
from repro.engines.resolver import Pin, Resolver
from repro.engines.wheels import requirements_of
from repro.errors import BuildError, ReproError
from repro.stacks import stacks

INSTALL_SECONDS = 1800.0
PTXAS_PACKAGE = "nvidia-cuda-nvcc-cu12"
PTXAS_INSIDE = "nvidia/cuda_nvcc/bin/ptxas"
"""Where that package has the program, below the folder it is installed into."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What goes into a cell, in the order of its layers.

    Args:
        torch: torch and what it needs, without triton: the layer that cells share.
        cell: triton, pytest and everything else.
        ptxas: the package that brings another ptxas, or None.
        indexes: where pins without a wheel of this machine come from.
    """

    torch: tuple[Pin, ...]
    cell: tuple[Pin, ...]
    ptxas: Pin | None = None
    indexes: Indexes = field(default_factory=Indexes)


def plan(
    cell: Cell,
    requirements: Sequence[str] = (),
    held: Mapping[str, str] | None = None,
    prefer: Sequence[Pin] = (),
) -> Plan:
    """Resolve everything that a cell needs.

    Args:
        cell: the cell.
        requirements: further pip requirements of the subject.
        held: packages that the base brings along already; not installed again where their version fits.
        prefer: versions to keep to where they fit.

    Raises:
        BuildError: a package or version is on no index and in no folder that can be reached.
    """
    resolver = Resolver(cell, where.configured())
    held = held or {}
    if held:
        return _upon(resolver, held, requirements)
    torch = resolver.resolve([resolver.torch], prefer)
    whole = resolver.resolve(
        [resolver.torch, f"triton=={cell.triton}", "pytest", *cell.packages, *requirements], [*torch, *prefer]
    )
    shared = tuple(pin for pin in torch if pin.name != "triton")
    rest = tuple(pin for pin in whole if pin not in shared)
    return Plan(torch=shared, cell=rest, ptxas=_ptxas(resolver), indexes=resolver.indexes)


def _upon(resolver: Resolver, held: Mapping[str, str], requirements: Sequence[str]) -> Plan:
    """What is missing beside what the base holds; another torch than the base's is laid over it.

    Raises:
        BuildError: a missing package is nowhere.
    """
    cell = resolver.cell
    same = held.get("torch", "").partition("+")[0] == cell.torch
    torch = (
        [] if same else [pin for pin in _missing(resolver, [resolver.torch], held) if pin.name != "triton"]
    )
    named = [f"triton=={cell.triton}", "pytest", *cell.packages, *requirements]
    absent = [text for text in named if not _satisfied(Requirement(text), held)]
    there = {**held, **{pin.name: pin.version for pin in torch}}
    rest = _missing(resolver, absent, there) if absent else []
    return Plan(torch=tuple(torch), cell=tuple(rest), ptxas=_ptxas(resolver), indexes=resolver.indexes)


def _missing(resolver: Resolver, wanted: Sequence[str], held: Mapping[str, str]) -> list[Pin]:
    """Exact versions of `wanted`, and of what they need and the base has not, or not in a version that fits.

    Raises:
        BuildError: one of them is nowhere.
    """
    there = set(held) - {canonicalize_name(Requirement(text).name) for text in wanted} - {"triton"}
    own = {"triton"} if held.get("triton") == resolver.cell.triton else set()
    while True:
        pins = resolver.resolve(wanted, there=sorted(there | own))
        texts = [text for pin in pins if pin.wheel for text in requirements_of(pin.wheel)]
        unmet = {requirement for requirement in map(Requirement, texts) if not _satisfied(requirement, held)}
        too_old = {canonicalize_name(requirement.name) for requirement in unmet} & there
        if not too_old:
            return pins
        there -= too_old


def _ptxas(resolver: Resolver) -> Pin | None:
    """The package with the ptxas that the cell asks for.

    Raises:
        BuildError: it is nowhere.
    """
    if resolver.cell.ptxas is None:
        return None
    pins = resolver.resolve([f"{PTXAS_PACKAGE}=={resolver.cell.ptxas}"])
    return next(pin for pin in pins if pin.name == PTXAS_PACKAGE)


def _satisfied(requirement: Requirement, held: Mapping[str, str]) -> bool:
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    found = held.get(canonicalize_name(requirement.name))
    return found is not None and requirement.specifier.contains(Version(found), prereleases=True)


def direct_requirements(cell: Cell, requirements: Sequence[str] = ()) -> list[str]:
    """What is asked for by name; part of the hash that decides whether a cell stands."""
    ptxas = [] if cell.ptxas is None else [f"{PTXAS_PACKAGE}=={cell.ptxas}"]
    named = [f"torch=={cell.torch}+{cell.cuda}", f"triton=={cell.triton}", "pytest", *ptxas]
    return [*named, *sorted(cell.packages), *sorted(requirements)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Set up an environment that is there: `install --torch X --cuda cpu --triton Y --python PATH`."""
    import argparse
    import sys

    parser = argparse.ArgumentParser(prog="python -m repro.engines.packages", description=main.__doc__)
    parser.add_argument("command", choices=["install"])
    for name in ("torch", "cuda", "triton"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--python", type=Path, required=True, help="interpreter of the environment")
    given = parser.parse_args(arguments)
    try:
        _install(given.torch, given.cuda, given.triton, given.python)
    except ReproError as error:
        lines = [f"error: {error.what}", error.why and f"why: {error.why}", error.next_step]
        print("\n".join(line for line in lines if line), file=sys.stderr)
        return int(error.exit_code)
    return 0


def _install(torch: str, cuda: str, triton: str, python: Path) -> None:
    """Add torch, triton and what they need to an environment; what is there and fits stays.

    Raises:
        BuildError: no such interpreter, or a package is nowhere.
    """
    from repro.engines.installer import Installer

    here = look_at(python.absolute())
    if here is None:
        raise BuildError(f"{python} does not run", next_step="make clean, then the same command again")
    release = stacks().torch.get(torch)
    cell = Cell(
        python=here.minor,
        torch=torch,
        triton=triton,
        cuda=cuda,
        pinned_triton=release.triton if release else triton,
        packages=stacks().requirements(triton, cuda),
    )
    there = [Pin(name=name, version=version) for name, version in here.held.items()]
    wanted = plan(cell, prefer=there)
    pins = [pin for pin in (*wanted.torch, *wanted.cell) if here.held.get(pin.name) != pin.version]
    handle, name = tempfile.mkstemp(prefix="repro-install-", suffix=".log")
    os.close(handle)
    deadline = time.monotonic() + INSTALL_SECONDS
    installer = Installer(uv_program(), python.absolute(), wanted.indexes, Path(name), deadline)
    installer.install(cell, pins)
    Path(name).unlink()  # kept where the installation failed: the error names it


if __name__ == "__main__":
    raise SystemExit(main())
