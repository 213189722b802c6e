"""From options to the parts that a command works with: matrix, cells, subject, engine, ledger."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from repro.cells import Cell, Excluded, Expansion, expand, select
from repro.config import Limits, Matrix, Profile, SubjectSpec, load
from repro.engines import create, gpu_count, gpu_model, has_gpu
from repro.engines.base import Engine, GpuMode, Say
from repro.errors import NotReadyError, UsageError
from repro.run import Runner
from repro.store import Ledger
from repro.subject import Subject, override, resolve


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """What every command starts from.

    Args:
        matrix: as loaded.
        profile: the one that runs.
        expansion: its cells, those of `--only` alone.
        state: folder for ledger and evidence.
        engine_name: as asked for.
        gpu: as asked for.
    """

    matrix: Matrix
    profile: Profile
    expansion: Expansion
    state: Path
    engine_name: str = "auto"
    gpu: GpuMode = GpuMode.AUTO

    @property
    def cells(self) -> Sequence[Cell]:
        """The cells that run."""
        return self.expansion.cells

    @property
    def limits(self) -> Limits:
        """On every trial process and build."""
        return self.matrix.limits

    def engine(self) -> Engine:
        """The engine that was asked for, or the best one that answers.

        Raises:
            NotReadyError: the engine that was asked for by name does not answer.
        """
        return create(self.engine_name, state=self.state, gpu=self.gpu)

    def gpus(self) -> list[int]:
        """Indexes of the GPUs to use; none where no cell needs one."""
        wanted = self.gpu is not GpuMode.NONE and any(cell.on_gpu for cell in self.cells)
        return list(range(gpu_count())) if wanted else []

    def first_gpu(self) -> int | None:
        """Index of the GPU for trials that run one after the other; None where no cell needs one."""
        return next(iter(self.gpus()), None)

    def check_gpu(self) -> None:
        """Refuse GPU cells where no GPU can be had, before anything is built for them.

        Raises:
            NotReadyError: with the fix.
        """
        if self.gpu is GpuMode.NONE or has_gpu() or not any(cell.on_gpu for cell in self.cells):
            return
        raise NotReadyError(
            f"profile {self.profile.name} has GPU cells, and no NVIDIA GPU answers here",
            why="the driver is not loaded, or this machine has none",
            next_step="`nvidia-smi` must work first; without a GPU: --profile cpu",
        )

    def workers(self) -> int:
        """Cells that run at a time: one a GPU, or one a core."""
        return len(self.gpus()) or os.cpu_count() or 1

    def subject(self, location: str | None, test: str | None, test_file: str | None) -> Subject:
        """The code under test, copied.

        Raises:
            UsageError: folder, revision, file or test is not there.
        """
        return self.resolved(override(self.matrix.subject, location=location, test=test), test_file)

    def resolved(self, spec: SubjectSpec, test_file: str | None) -> Subject:
        """A subject, copied.

        Raises:
            UsageError: folder, revision, file or test is not there.
        """
        return resolve(spec, state=self.state, test_file=test_file)

    def ledger(self) -> Ledger:
        """The ledger of the state folder, made if need be."""
        self.state.mkdir(parents=True, exist_ok=True)
        return Ledger.open(self.state / "ledger.sqlite")


def open_workspace(
    matrix_file: Path,
    *,
    profile: str | None,
    only: Sequence[str],
    state: Path,
    engine: str = "auto",
    gpu: str = GpuMode.AUTO.value,
) -> Workspace:
    """Read the matrix and choose its profile and cells.

    Raises:
        UsageError: mistakes in matrix.yaml, an unknown profile, a glob that matches nothing.
    """
    matrix = load(_there(matrix_file))
    mode = GpuMode(gpu)
    name = profile or matrix.default_profile(gpu=mode is not GpuMode.NONE and has_gpu()).name
    expansion = expand(matrix, name)
    if engine == "host":
        expansion = _here(expansion)
    cells = select(expansion.cells, only)
    chosen = Expansion(cells=cells, excluded=expansion.excluded, reasons=expansion.reasons)
    return Workspace(
        matrix=matrix,
        profile=matrix.profiles[name],
        expansion=chosen,
        state=state.absolute(),
        engine_name=engine,
        gpu=mode,
    )


def _there(matrix_file: Path) -> Path:
    if os.path.lexists(matrix_file):
        return matrix_file
    raise UsageError(
        f"there is no {matrix_file} here" if not matrix_file.is_absolute() else f"there is no {matrix_file}",
        why="it says which test is run, and in which versions",
        next_step="`repro init` writes one for the repository that you stand in; or name one with --matrix",
    )


@contextmanager
def open_runner(workspace: Workspace, say: Say) -> Iterator[Runner]:
    """A runner over the workspace's own ledger.

    Raises:
        NotReadyError: the engine does not answer.
    """
    with workspace.ledger() as ledger:
        yield make_runner(workspace, ledger, say)


def make_runner(workspace: Workspace, ledger: Ledger, say: Say) -> Runner:
    """A runner over a ledger, with what a killed run left behind taken in."""
    runner = Runner(
        engine=workspace.engine(),
        ledger=ledger,
        state=workspace.state,
        limits=workspace.limits,
        gpu_model=gpu_model() if workspace.gpus() else "",
        say=say,
    )
    runner.recover()
    return runner


def _here(expansion: Expansion) -> Expansion:
    """The one cell that this interpreter is, with each environment that the cells have."""
    from repro.engines.host import host_cell

    here = host_cell()
    environments = dict.fromkeys(cell.env for cell in expansion.cells) or [here.env]
    cells = tuple(replace(here, env=env) for env in environments)
    ids = {cell.id for cell in cells}
    reason = f"the host engine has one cell, what its interpreter holds: {here.id}"
    others = [Excluded(cell=cell, reason=reason) for cell in expansion.cells if cell.id not in ids]
    return Expansion(cells=cells, excluded=(*expansion.excluded, *others))


def is_held(state: Path) -> bool:
    """Whether a run holds the state folder now."""
    try:
        with (state / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


@contextmanager
def only_run(state: Path) -> Iterator[None]:
    """Hold the state folder for one run; others may still read it.

    Raises:
        NotReadyError: another run holds it.
    """
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise NotReadyError(
                f"another run works in {state.name} (process {file.read().strip() or 'unknown'})",
                why="two runs would try the same seeds twice",
                next_step="wait for it (`repro status` shows how far it is), or take another: --state DIR",
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
