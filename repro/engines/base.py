"""What an engine is: the protocol that Docker, virtual environments and this interpreter follow."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from repro.cells import Cell
from repro.config import Limits as Limits

Say = Callable[[str], None]
"""Takes one line of progress, without its line break."""


class GpuMode(StrEnum):
    """How a GPU gets into a trial."""

    AUTO = "auto"
    TOOLKIT = "toolkit"
    CDI = "cdi"
    DEVICES = "devices"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One process to run in a prepared cell: `python -m repro_trial request.json`.

    Args:
        name: unique and readable; names the container.
        kit: host folder that holds `repro_trial/`; on PYTHONPATH, read-only.
        subject: host folder with the code under test; read-only.
        inputs: host folder of kept inputs to replay, or None; read-only.
        test_file: host file of the user's own outside the subject, or None; read-only.
        records: host folder, the one place where results are written.
        cache: host folder for the kernel caches of this cell and subject revision.
        python_path: folders of the subject, relative to it, put on PYTHONPATH.
        request: what to run, without any path; `write_request` adds the paths as the process sees them.
        env: environment variables of the cell.
        gpu: index of the GPU to use, or None.
        command: what to run instead of `python -m repro_trial`, or empty.
        terminal: whether the process has the user's terminal: what it reads and writes is not kept.
    """

    name: str
    kit: Path
    subject: Path
    records: Path
    cache: Path
    request: Mapping[str, object]
    inputs: Path | None = None
    test_file: Path | None = None
    python_path: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    gpu: int | None = None
    limits: Limits = field(default_factory=Limits)
    command: Sequence[str] = ()
    terminal: bool = False


@dataclass(frozen=True, kw_only=True)
class Places:
    """A job's folders as its process sees them: its own inside a container, the host's elsewhere."""

    kit: str
    subject: str
    records: str
    cache: str
    inputs: str | None = None
    test_file: str | None = None


def write_request(job: Job, places: Places) -> Path:
    """Write `request.json` into the job's records folder and return its host path."""
    request = {
        **job.request,
        "root": places.subject,
        "records": places.records,
        "inputs": places.inputs,
        "test_file": places.test_file or job.request.get("test_file"),
        "python_path": [f"{places.subject}/{folder}".removesuffix("/.") for folder in job.python_path],
    }
    path = job.records / "request.json"
    path.write_text(json.dumps(request, indent=1), encoding="utf-8")
    return path


@dataclass(frozen=True, kw_only=True)
class Exit:
    """How a process ended.

    Args:
        code: exit status, 128 and the signal's number where one ended it; None where nobody can tell.
        signal: number of the signal that ended it, or None.
        out_of_memory: whether the kernel killed it for memory.
        detail: the last lines that the process wrote, for a message.
        infra: why the engine itself failed (engine gone, GPU request refused), or "".
    """

    code: int | None
    signal: int | None = None
    out_of_memory: bool = False
    detail: str = ""
    infra: str = ""


class Running(Protocol):
    """A process that was started; a context manager that leaves nothing behind."""

    def poll(self) -> Exit | None:
        """How it ended, or None while it runs."""

    def kill(self) -> None:
        """End it and all it started, now."""

    def __enter__(self) -> Running: ...

    def __exit__(self, *exc: object) -> None:
        """Kill what still runs and remove the container, process group and temporary files."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A cell that trials can run in.

    Args:
        cell: the cell.
        handle: image id, path of the environment's interpreter, or this interpreter's path.
        digest: content hash of what went into it; goes into every record.
        built: whether it was built now (False: it was there).
        seconds: how long that took.
    """

    cell: Cell
    handle: str
    digest: str
    built: bool
    seconds: float


class CheckState(StrEnum):
    """What a check of the machine found."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    """Blocks: `repro doctor` exits with 3."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One line of `repro doctor`: what was checked, what was seen, and the fix where it is needed."""

    name: str
    state: CheckState
    evidence: str
    fix: str = ""


class Engine(Protocol):
    """One way to make cells and run trials in them."""

    name: str

    def checks(self) -> list[Check]:
        """Whether this engine can work here, each with evidence and the fix."""

    def present(self, cell: Cell, requirements: Sequence[str] = ()) -> bool:
        """Whether the cell can run without a build. Fast: no process, one engine call at most."""

    def prepare(
        self, cell: Cell, *, requirements: Sequence[str], limits: Limits, log: Path, say: Say
    ) -> Prepared:
        """Make the cell runnable.

        Args:
            cell: what to make.
            requirements: further pip requirements of the subject.
            limits: `build_timeout` applies.
            log: file that takes the whole output of the build.
            say: takes lines of progress.

        Raises:
            BuildError: with the decisive line of the log, and where the log is.
            NotReadyError: when the engine itself does not answer.
        """

    def start(self, prepared: Prepared, job: Job) -> Running:
        """Start a job in a prepared cell.

        Raises:
            NotReadyError: when the engine or the GPU that was asked for is not there; nothing is left behind.
        """

    def sweep(self) -> list[str]:
        """Remove what earlier, dead runs of this kit left behind; the names of what was removed."""
