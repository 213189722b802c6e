"""A virtual environment a cell: for machines without a container engine."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from repro.cells import Cell
from repro.engines import packages, pythons
from repro.engines.base import Check, CheckState, GpuMode, Job, Limits, Prepared, Running, Say
from repro.engines.installer import Installer
from repro.engines.local import start_local, sweep_local
from repro.engines.locking import locked
from repro.engines.messages import decisive_line
from repro.engines.process import Done, run_logged
from repro.errors import BuildError

LAYOUT = 1
"""Raised when an environment made by an older kit no longer fits."""


class VenvEngine:
    """Makes environments with uv under the state folder, and runs trials in process groups of their own."""

    name = "venv"

    def __init__(self, state: Path, gpu: GpuMode = GpuMode.AUTO) -> None:
        self._home = state.resolve() / "venvs"
        self._register = state.resolve() / "running"
        self._gpu = gpu

    def checks(self) -> list[Check]:
        """Whether uv and Python interpreters are here."""
        try:
            uv = pythons.uv_program()
        except FileNotFoundError:
            fix = f"{sys.executable} -m pip install uv"
            return [Check(name="uv", state=CheckState.FAIL, evidence="no uv program found", fix=fix)]
        here = ", ".join(pythons.versions_here())
        return [Check(name="uv", state=CheckState.OK, evidence=f"{uv}; Python {here} here")]

    def present(self, cell: Cell, requirements: Sequence[str] = ()) -> bool:
        """Whether the environment was finished."""
        return (self._folder(cell, requirements) / "repro.json").exists()

    def prepare(
        self, cell: Cell, *, requirements: Sequence[str], limits: Limits, log: Path, say: Say
    ) -> Prepared:
        """Make the environment unless it is there; see `Engine.prepare`.

        Raises:
            BuildError: no such Python, no such package, or the installation failed.
        """
        begin = time.monotonic()
        folder = self._folder(cell, requirements)
        built = False
        with locked(folder.with_suffix(".lock")):
            if not self.present(cell, requirements):
                shutil.rmtree(folder, ignore_errors=True)
                say(f"{cell.id}: making a virtual environment")
                try:
                    self._build(folder, cell, requirements, limits, log)
                except BaseException:
                    shutil.rmtree(folder, ignore_errors=True)
                    raise
                built = True
        digest = json.loads((folder / "repro.json").read_text(encoding="utf-8"))["digest"]
        return Prepared(
            cell=cell,
            handle=str(folder / "bin" / "python"),
            digest=digest,
            built=built,
            seconds=time.monotonic() - begin,
        )

    def start(self, prepared: Prepared, job: Job) -> Running:
        """Start a job with the environment's interpreter; see `Engine.start`.

        Raises:
            NotReadyError: the interpreter is gone, or the GPU is not there.
        """
        python = Path(prepared.handle)
        ptxas = python.parent.parent / "ptxas" / packages.PTXAS_INSIDE
        more = {"TRITON_PTXAS_PATH": str(ptxas)} if prepared.cell.ptxas else {}
        if self._gpu is GpuMode.NONE:
            more["CUDA_VISIBLE_DEVICES"] = ""
        return start_local(python, prepared.cell, job, self._register, more)

    def sweep(self) -> list[str]:
        """End trial processes that a killed kit left running."""
        return sweep_local(self._register)

    def _folder(self, cell: Cell, requirements: Sequence[str]) -> Path:
        asked = [LAYOUT, platform.machine(), cell.python, *packages.direct_requirements(cell, requirements)]
        return self._home / hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]

    def _build(
        self, folder: Path, cell: Cell, requirements: Sequence[str], limits: Limits, log: Path
    ) -> None:
        deadline = time.monotonic() + limits.build_timeout
        uv = pythons.uv_program()
        found = pythons.find(cell.python)
        python = str(found[0].path) if found else cell.python
        command = [uv, "venv", "--no-project", "--no-config", "--python", python, str(folder)]
        made = run_logged(command, log=log, timeout=limits.build_timeout, cwd=folder.parent)
        if not made.ok:
            raise _no_python(cell, made, log)
        plan = packages.plan(cell, requirements)
        installer = Installer(uv, folder / "bin" / "python", plan.indexes, log, deadline)
        installer.install(cell, [*plan.torch, *plan.cell])
        if plan.ptxas:
            installer.install(cell, [plan.ptxas], "--target", str(folder / "ptxas"))
        pins = sorted(pin.requirement for pin in (*plan.torch, *plan.cell))
        digest = hashlib.sha256(json.dumps([cell.python, cell.ptxas, pins]).encode()).hexdigest()
        note = {"cell": cell.id, "digest": digest, "pins": pins}
        (folder / "repro.json").write_text(json.dumps(note, indent=1), encoding="utf-8")


def _no_python(cell: Cell, made: Done, log: Path) -> BuildError:
    here = ", ".join(pythons.versions_here())
    return BuildError(
        f"{cell.id}: there is no Python {cell.python} here, and none could be downloaded",
        why=f"this machine has Python {here}; uv said: {decisive_line(made.output)}",
        next_step=f"uv python install {cell.python}, or keep to the Pythons that are here; the log is {log}",
    )
