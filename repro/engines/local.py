"""Trial processes of this machine: what the venv and the host engine share."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from repro.cells import Cell
from repro.engines.base import Exit, Job, Limits, Places, write_request
from repro.engines.environment import command_of, trial_environment
from repro.engines.process import alive, kill_members, members, started_at, tail, usage
from repro.errors import NotReadyError

KEPT = ("PATH", "LD_LIBRARY_PATH", "TZ", "CC", "CXX", "CUDA_HOME", "CUDA_PATH")
"""Variables of the kit's own environment that a trial sees; the rest is left out."""

WATCH_SECONDS = 0.2
MARKER = "REPRO_JOB"


class LocalProcess:
    """A trial process with a session of its own; ends with everything it started."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], job: Job, register: Path) -> None:
        self._job = job
        self._marker = f"{MARKER}={job.name}-{os.urandom(6).hex()}"
        self._log = job.records / "output.log"
        self._exit: Exit | None = None
        self._killed = self._out_of_memory = False
        self._why = ""
        self._looked = 0.0
        # Noted before it begins, so that a kit that is killed in between leaves nothing unknown behind.
        register.mkdir(parents=True, exist_ok=True)
        self._note = register / f"{job.name}.json"
        self._note.write_text(json.dumps({"name": job.name, "marker": self._marker, **_kit()}), "utf-8")
        with self._log.open("ab") as output:
            kept: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            try:
                self._process = subprocess.Popen(
                    command, cwd=job.subject, env={**env, MARKER: self._marker.partition("=")[2]},
                    start_new_session=not job.terminal, **({} if job.terminal else kept),
                )  # fmt: skip
            except OSError as error:
                self._note.unlink()
                raise NotReadyError(
                    f"cannot start {command[0]}: {error.strerror}",
                    why="the cell's environment was moved or removed after it was built",
                    next_step="repro build",
                ) from None
        with suppress(OSError, ValueError):
            resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (0, 0))

    def poll(self) -> Exit | None:
        """How it ended, or None while it runs; memory and process limits are looked after here."""
        if self._exit is None:
            code = self._process.poll()
            if code is None:
                self._enforce(self._job.limits)
                return None
            self._exit = self._ended(code)
        return self._exit

    def kill(self) -> None:
        """End it and all it started, also what left its session."""
        kill_members(self._marker, self._process.pid)
        self._process.wait()

    def __enter__(self) -> LocalProcess:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()
        self._note.unlink(missing_ok=True)
        shutil.rmtree(self._job.records / "tmp", ignore_errors=True)

    def _enforce(self, limits: Limits) -> None:
        now = time.monotonic()
        if now - self._looked < WATCH_SECONDS:
            return
        self._looked = now
        used = usage(list(members(self._marker, self._process.pid)))
        if limits.memory is not None and used.resident > limits.memory:
            self._out_of_memory = True
            self._why = f"took {used.resident >> 20} MB, {limits.memory >> 20} MB are allowed"
        elif used.threads > limits.pids:
            self._why = f"ran {used.threads} processes and threads, {limits.pids} are allowed"
        if self._why:
            self.kill()

    def _ended(self, code: int) -> Exit:
        number = -code if code < 0 else None
        detail = "\n".join(part for part in (tail(self._log), self._why) if part)
        return Exit(
            code=128 - code if code < 0 else code,
            signal=number,
            out_of_memory=self._out_of_memory,
            detail=detail,
        )


def start_local(
    python: Path, cell: Cell, job: Job, register: Path, more: Mapping[str, str] | None = None
) -> LocalProcess:
    """Start a job with an interpreter of this machine.

    Raises:
        NotReadyError: the interpreter cannot be started.
    """
    job = replace(
        job,
        **{name: getattr(job, name).resolve() for name in ("kit", "subject", "records", "cache")},
        inputs=job.inputs.resolve() if job.inputs else None,
        test_file=job.test_file.resolve() if job.test_file else None,
    )
    places = Places(
        kit=str(job.kit),
        subject=str(job.subject),
        records=str(job.records),
        cache=str(job.cache),
        inputs=str(job.inputs) if job.inputs else None,
        test_file=str(job.test_file) if job.test_file else None,
    )
    home, tmp = job.records / "tmp" / "home", job.records / "tmp"
    for folder in (home, job.cache):
        folder.mkdir(parents=True, exist_ok=True)
    write_request(job, places)
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    env["PATH"] = f"{python.parent}:{env.get('PATH', os.defpath)}"
    env["CUDA_VISIBLE_DEVICES"] = "" if job.gpu is None else str(job.gpu)
    env |= trial_environment(cell, job, places, home=str(home), tmp=str(tmp))
    return LocalProcess(
        command_of(job, str(python), places), {**env, **(more or {}), **job.env}, job, register
    )


def sweep_local(register: Path) -> list[str]:
    """End the trial processes whose kit is dead; the names of their jobs."""
    ended = []
    for note in sorted(register.glob("*.json")):
        try:
            left = json.loads(note.read_text(encoding="utf-8"))
            if alive(left["kit"]) and started_at(left["kit"]) == left["kit_started"]:
                continue
            if any(members(left["marker"], -1)):
                kill_members(left["marker"], -1)
                ended.append(str(left["name"]))
        except (ValueError, KeyError, OSError):
            pass
        note.unlink(missing_ok=True)
    return ended


def _kit() -> dict[str, object]:
    return {"kit": os.getpid(), "kit_started": started_at(os.getpid())}
