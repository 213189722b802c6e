"""The interpreter that runs the kit, as it is: the record tells what was really imported."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from repro.cells import Cell
from repro.engines.base import Check, CheckState, GpuMode, Job, Limits, Prepared, Running, Say
from repro.engines.local import start_local, sweep_local
from repro.errors import BuildError, NotReadyError
from repro.stacks import stacks


class HostEngine:
    """Builds nothing: every cell runs with whatever this interpreter holds."""

    name = "host"

    def __init__(self, state: Path, gpu: GpuMode = GpuMode.AUTO) -> None:
        self._register = state.resolve() / "running"
        self._gpu = gpu

    def checks(self) -> list[Check]:
        """Whether pytest is there, and which torch and triton would be tested."""
        here = ", ".join(f"{name} {_version(name) or 'missing'}" for name in ("torch", "triton", "pytest"))
        state = CheckState.OK if _version("pytest") else CheckState.FAIL
        fix = "" if state is CheckState.OK else f"{sys.executable} -m pip install pytest"
        return [Check(name="interpreter", state=state, evidence=f"{sys.executable}: {here}", fix=fix)]

    def present(self, cell: Cell, requirements: Sequence[str] = ()) -> bool:
        """Always: there is nothing to build."""
        return True

    def prepare(
        self, cell: Cell, *, requirements: Sequence[str], limits: Limits, log: Path, say: Say
    ) -> Prepared:
        """Say where the interpreter differs from the cell; see `Engine.prepare`.

        Raises:
            BuildError: pytest is missing.
        """
        if _version("pytest") is None:
            raise BuildError(
                f"{sys.executable} has no pytest, and trials need it",
                why="the host engine installs nothing",
                next_step=f"{sys.executable} -m pip install pytest, or --engine venv",
            )
        for difference in _differences(cell):
            say(f"{cell.id}: {difference}; the host engine tests what is here")
        held = sorted(f"{found.name}=={found.version}" for found in metadata.distributions())
        digest = hashlib.sha256(json.dumps([sys.version, held]).encode()).hexdigest()
        return Prepared(cell=cell, handle=sys.executable, digest=digest, built=False, seconds=0.0)

    def start(self, prepared: Prepared, job: Job) -> Running:
        """Start a job with this interpreter; see `Engine.start`.

        Raises:
            NotReadyError: the interpreter cannot be started.
        """
        more = {"CUDA_VISIBLE_DEVICES": ""} if self._gpu is GpuMode.NONE else {}
        return start_local(Path(prepared.handle), prepared.cell, job, self._register, more)

    def sweep(self) -> list[str]:
        """End trial processes that a killed kit left running."""
        return sweep_local(self._register)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _differences(cell: Cell) -> list[str]:
    minor = ".".join(platform.python_version_tuple()[:2])
    rows = (
        ("python", cell.python, minor),
        ("torch", cell.torch, (_version("torch") or "missing").partition("+")[0]),
        ("triton", cell.triton, _version("triton") or "missing"),
    )
    return [f"{name} {wanted} is asked for, {here} is here" for name, wanted, here in rows if wanted != here]


def host_cell() -> Cell:
    """The cell that this interpreter is.

    Raises:
        NotReadyError: it has no torch or no triton, so no cell names it.
    """
    held = {name: (_version(name) or "").partition("+") for name in ("torch", "triton")}
    missing = [name for name, (version, _, _) in held.items() if not version]
    if missing:
        raise NotReadyError(
            f"{sys.executable} has no {' and no '.join(missing)}",
            why="the host engine runs with what the interpreter of the kit holds",
            next_step=f"{sys.executable} -m pip install {' '.join(missing)}, or --engine venv",
        )
    release, _, build = held["torch"]
    triton = held["triton"][0]
    known = stacks().torch.get(release)
    return Cell(
        python=".".join(platform.python_version_tuple()[:2]),
        torch=release,
        triton=triton,
        cuda=build or (known.default if known else "cpu"),
        pinned_triton=known.triton if known else triton,
    )
