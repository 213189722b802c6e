"""Which stacks this machine can run: by its Pythons, its driver, and the wheels that it can reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from repro.cells import Cell
from repro.engines import indexes, nvidia, pythons, wheels
from repro.engines.glance import glance
from repro.stacks import Stacks, stacks, version

LINES = 6
"""Release lines of torch that a GPU profile begins with, the newest ones."""

DRIVERS = {"13": 580, "12": 525, "11": 450}
"""Oldest driver of each CUDA line; NVIDIA's table of minor version compatibility."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What decides about stacks.

    Args:
        pythons: minor versions that are here, oldest first.
        gpus: how many GPUs answer.
        gpu: model of the first one, or "".
        driver: version of NVIDIA's driver, or "".
        engine: engine that `--engine auto` would take.
        cpu_wheels: releases of torch whose CPU build can be had from here, with the Python it is for; None
            where an index has them all.
    """

    pythons: tuple[str, ...]
    gpus: int = 0
    gpu: str = ""
    driver: str = ""
    engine: str = "venv"
    cpu_wheels: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Stack:
    """The axes of one profile."""

    python: str
    torch: tuple[str, ...]
    triton: tuple[str, ...] = ("pinned",)
    cuda: str = "default"


def look() -> Machine:
    """This machine; asks an index once, for seconds at most."""

    here = tuple(pythons.versions_here())
    return Machine(
        pythons=here,
        gpus=nvidia.gpu_count(),
        gpu=nvidia.gpu_model() or "",
        driver=nvidia.driver_version() or "",
        engine=glance("auto", state=Path(".repro"))[0],
        cpu_wheels=_cpu_wheels(here),
    )


def _cpu_wheels(here: Sequence[str]) -> tuple[tuple[str, str], ...] | None:
    known, configured = stacks(), indexes.configured()
    newest = list(known.torch)[-1]
    url = known.wheel_index(newest, "cpu")
    if url and not configured.no_index and indexes.reachable([url], configured.cert) == [None]:
        return None
    cells = [
        Cell(python=python, torch=torch, triton=row.triton, cuda="cpu", pinned_triton=row.triton)
        for torch, row in known.torch.items()
        for python in here
    ]
    fitting = [cell for cell in cells if wheels.local_wheel(configured.find_links, cell)]
    return tuple((cell.torch, cell.python) for cell in fitting)


def stacks_for(machine: Machine, known: Stacks | None = None) -> dict[str, Stack]:
    """The profiles to begin with, by name: `gpu` and `cpu`."""
    known = known or stacks()
    return {"gpu": _gpu(machine, known), "cpu": _cpu(machine, known)}


def _gpu(machine: Machine, known: Stacks) -> Stack:
    """The newest release of each line of torch, in the build that the driver can run."""
    build = _build(machine.driver)
    python = _python(machine, known)
    fitting = [torch for torch in known.torch if _exists(known, python, torch, build)]
    newest = {version(torch).release[:2]: torch for torch in fitting}
    return Stack(python=python, torch=tuple(newest.values())[-LINES:], cuda=build)


def _build(driver: str) -> str:
    """PyPI's own build of each torch; an older CUDA where the driver is too old for the newest."""
    major = int(driver.partition(".")[0]) if driver else DRIVERS["13"]
    if major >= DRIVERS["13"]:
        return "default"
    return "cu126" if major >= DRIVERS["12"] else "cu118"


def _exists(known: Stacks, python: str, torch: str, build: str) -> bool:
    row = known.torch[torch]
    wanted = row.default if build == "default" else build
    return known.impossible(python=python, torch=torch, triton=row.triton, build=wanted, ptxas=None) is None


def _python(machine: Machine, known: Stacks) -> str:
    """The Python here that has wheels for most releases of torch, the newest of these."""

    def count(python: str) -> int:
        return sum(_exists(known, python, torch, "default") for torch in known.torch)

    usable = [python for python in known.known("python") if python in machine.pythons and count(python)]
    every = [python for python in known.known("python") if count(python)]
    return max(usable or every, key=lambda python: (count(python), version(python)))


def _cpu(machine: Machine, known: Stacks) -> Stack:
    """One torch without CUDA, and the lines of Triton around its own."""
    torch, python = _cpu_torch(machine, known)
    own = known.torch[torch].triton
    lines = {version(triton).release[:2]: triton for triton in known.triton}
    lines[version(own).release[:2]] = own
    near = list(lines.values())
    place = near.index(own)
    around = near[max(0, place - 1) : place + 2]
    fitting = (
        known.impossible(python=python, torch=torch, triton=triton, build="cpu", ptxas=None) is None
        for triton in around
    )
    triton = tuple(each for each, fits in zip(around, fitting, strict=True) if fits)
    return Stack(python=python, torch=(torch,), triton=triton or ("pinned",), cuda="cpu")


def _cpu_torch(machine: Machine, known: Stacks) -> tuple[str, str]:
    """The newest torch whose CPU build can be had here, and the Python to run it in."""
    wheels_here = [pair for pair in machine.cpu_wheels or () if pair[0] in known.torch]
    if wheels_here:
        return max(wheels_here, key=lambda pair: (version(pair[0]), version(pair[1])))
    python = _python(machine, known)
    return [torch for torch in known.torch if _exists(known, python, torch, "cpu")][-1], python
