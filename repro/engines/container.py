"""One trial in one container: locked down, watched, and removed in every case."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from docker.errors import APIError, NotFound
from docker.models.containers import Container
from docker.types import Mount, Ulimit

from repro.cells import Cell
from repro.engines.base import Exit, Job, Places
from repro.engines.client import FAILURES
from repro.engines.ending import SIGNALS, ended_from_outside
from repro.engines.environment import command_of, trial_environment
from repro.engines.gpu import GpuAccess
from repro.engines.images import PTXAS_HOME
from repro.engines.packages import PTXAS_INSIDE
from repro.trial.plain import open_plain

NOBODY = 65532
"""User of a trial where the kit itself runs as root: owns nothing on the host."""

OPEN_FILES = 16384
TMP_BYTES = 2 * 2**30
SHARED_MEMORY = 2**30
OUTPUT_BYTES = 256 * 1024
DETAIL_LINES = 12


def places_inside(job: Job) -> Places:
    """A job's folders as its container sees them."""
    test_file = f"/extra/{job.test_file.name}" if job.test_file else None
    return Places(
        kit="/kit",
        subject="/subject",
        records="/records",
        cache="/cache",
        inputs="/inputs" if job.inputs else None,
        test_file=test_file,
    )


def arguments(
    cell: Cell, job: Job, *, image: str, user: str, gpu: GpuAccess, labels: Mapping[str, str]
) -> dict[str, Any]:
    """Arguments of `containers.create`: what a trial may, which is little.

    Everything comes by `mounts`; `volumes` would end in an image made from the container.
    """
    places = places_inside(job)
    environment = trial_environment(cell, job, places, home="/tmp", tmp="/tmp")
    if cell.ptxas:
        environment.setdefault("TRITON_PTXAS_PATH", f"{PTXAS_HOME}/{PTXAS_INSIDE}")
    limit = job.limits.memory
    memory = {} if limit is None else {"mem_limit": limit, "memswap_limit": limit}  # the same: no swap
    return {
        "image": image,
        "name": job.name,
        "command": command_of(job, "python3", places),
        "working_dir": "/subject",
        "user": user,
        "environment": {**environment, **gpu.environment},
        "labels": dict(labels),
        "network_mode": "none",
        "read_only": True,
        "tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={TMP_BYTES}"},
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": job.limits.pids,
        "init": True,
        "tty": job.terminal,
        "stdin_open": job.terminal,
        "shm_size": SHARED_MEMORY,
        "ulimits": [
            Ulimit(name="nofile", soft=OPEN_FILES, hard=OPEN_FILES),
            Ulimit(name="core", soft=0, hard=0),
        ],
        "log_config": {"type": "json-file", "config": {"max-size": "4m", "max-file": "1"}},
        "mounts": [*_mounts(job, places), *gpu.mounts],
        "devices": list(gpu.devices),
        "device_requests": list(gpu.device_requests),
        **memory,
    }


def _mounts(job: Job, places: Places) -> list[Mount]:
    rows: list[tuple[str, Path, bool]] = [
        (places.kit, job.kit, True),
        (places.subject, job.subject, True),
        (places.records, job.records, False),
        (places.cache, job.cache, False),
    ]
    if job.inputs and places.inputs:
        rows.append((places.inputs, job.inputs, True))
    if job.test_file and places.test_file:
        rows.append((places.test_file, job.test_file, True))
    # On top of its folder: what is recorded counts for the cell and the revision that it names.
    rows.append((f"{places.records}/request.json", job.records / "request.json", True))
    return [Mount(inside, str(path.resolve()), type="bind", read_only=ro) for inside, path, ro in rows]


def user_for(uid: int, gid: int, *, rootless: bool) -> str:
    """Who a trial runs as: the caller, or nobody in particular where the caller is root.

    A rootless engine maps its root to the caller, who is the one that can write the records.
    """
    if rootless:
        return "0:0"
    return f"{NOBODY}:{NOBODY}" if uid == 0 else f"{uid}:{gid}"


def open_to(user: str, folders: list[Path]) -> None:
    """Make folders writable for a trial's user."""
    uid, gid = (int(part) for part in user.split(":"))
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0 and uid != 0:
            os.chown(folder, uid, gid)


class ContainerRun:
    """A container that was started; see `repro.engines.base.Running`."""

    def __init__(self, container: Container, job: Job) -> None:
        self._container = container
        self._job = job
        self._exit: Exit | None = None

    def poll(self) -> Exit | None:
        """How it ended, or None while it runs; an engine that is gone is an ending, too."""
        if self._exit is None:
            try:
                state = self._inspect()
            except NotFound:
                self._exit = Exit(code=None, infra="the container was removed while its trial was running")
            except FAILURES as error:
                self._exit = Exit(code=None, infra=f"the Docker engine went away: {explain(error)}")
            else:
                if not state["Running"] and state["Status"] != "created":
                    self._exit = self._ended(state)
        return self._exit

    def kill(self) -> None:
        """End it, and with it everything that it started."""
        with suppress(*FAILURES):
            self._container.kill()

    def __enter__(self) -> ContainerRun:
        return self

    def __exit__(self, *exc: object) -> None:
        remove(self._container)

    def _inspect(self) -> dict[str, Any]:
        self._container.reload()
        state: dict[str, Any] = self._container.attrs["State"]
        return state

    def _ended(self, state: Mapping[str, Any]) -> Exit:
        output = self._output()
        code = int(state["ExitCode"])
        out_of_memory = bool(state.get("OOMKilled"))
        detail = "\n".join(output.rstrip().splitlines()[-DETAIL_LINES:])
        if state.get("Error"):
            return Exit(code=None, detail=detail, infra=f"the Docker engine reports: {state['Error']}")
        number = code - 128 if 128 < code <= 192 else None
        if number in SIGNALS and not out_of_memory and (outside := ended_from_outside(self._container)):
            return Exit(code=None, detail=detail, infra=outside)
        return Exit(code=code, signal=number, out_of_memory=out_of_memory, detail=detail)

    def _output(self) -> str:
        """What it wrote; kept beside the records."""
        try:
            raw = self._container.logs(tail=4000)[-OUTPUT_BYTES:]
        except FAILURES:
            return ""
        log = self._job.records / "output.log"
        with suppress(OSError):
            log.unlink(missing_ok=True)  # the trial may have left a link there, to any file of the host
            with open_plain(log, append=True) as file:
                file.write(raw)
        return raw.decode(errors="replace")


class AttachedRun(ContainerRun):
    """A container on the user's terminal, by way of Docker's own client: it knows how to hand one on.

    Args:
        container: made and not yet started.
        job: that it is for.
        client: path of the client.
    """

    def __init__(self, container: Container, job: Job, client: str) -> None:
        super().__init__(container, job)
        command = [client, "start", "--attach", "--interactive", str(container.id)]
        self._attached = subprocess.Popen(command)

    def poll(self) -> Exit | None:
        """How it ended; a client that ends without having started the container is an ending, too."""
        found = super().poll()
        if found is None and self._attached.poll() is not None and self._inspect()["Status"] == "created":
            return Exit(code=None, infra="Docker's client could not attach the container to the terminal")
        return found

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        with suppress(subprocess.TimeoutExpired):
            self._attached.wait(timeout=5)


def remove(container: Container) -> None:
    """Remove a container, running or not; a container that is gone is fine."""
    with suppress(*FAILURES):
        container.remove(force=True, v=True)


def explain(error: Exception) -> str:
    """The first line of what the engine said."""
    text = error.explanation if isinstance(error, APIError) and error.explanation else str(error)
    return str(text).strip().splitlines()[0][:300] if str(text).strip() else type(error).__name__
