"""Processes of this machine: builds whose output goes to a log, and groups that end as one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TAIL_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a logged command ended: its status (None: killed at the time limit) and what it wrote."""

    code: int | None
    output: str

    @property
    def ok(self) -> bool:
        """Whether it ended with status 0 in time."""
        return self.code == 0


class Cancelled(KeyboardInterrupt):
    """The command was ended by `cancel_running`."""


class _Commands:
    """Logged commands that run now: they have sessions of their own, so that no Ctrl-C reaches them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[subprocess.Popen[bytes], bool] = {}

    @contextlib.contextmanager
    def among(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """List a command while the body waits for it; Cancelled where it was ended meanwhile."""
        with self._lock:
            self._running[process] = False
        try:
            yield
        finally:
            with self._lock:
                cancelled = self._running.pop(process)
        if cancelled:
            raise Cancelled

    def cancel(self) -> None:
        """End them all."""
        with self._lock:
            for process in self._running:
                if process.poll() is None:
                    self._running[process] = True
                    kill_group(process.pid)


_COMMANDS = _Commands()


def cancel_running() -> None:
    """End every command that `run_logged` runs now; it raises `Cancelled` in their threads."""
    _COMMANDS.cancel()


def run_logged(
    command: Sequence[str],
    *,
    log: Path,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Done:
    """Run a command with its output appended to `log`; at the limit its whole group is killed.

    Raises:
        FileNotFoundError: the program is not there.
        Cancelled: another thread called `cancel_running`.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        file.write(f"$ {' '.join(command)}\n".encode())
        file.flush()
        begin = file.tell()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            env=None if env is None else dict(env), cwd=cwd, start_new_session=True,
        )  # fmt: skip
        with _COMMANDS.among(process):
            code = _wait(process, timeout)
    with log.open("rb") as file:
        file.seek(begin)
        return Done(code=code, output=file.read().decode(errors="replace"))


def _wait(process: subprocess.Popen[bytes], timeout: float) -> int | None:
    """Its status, or None at the limit; nothing of it runs afterwards."""
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            kill_group(process.pid)
            process.wait()


def kill_group(pgid: int) -> None:
    """Send SIGKILL to a process group; no error where it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, signal.SIGKILL)


def tail(path: Path, lines: int = 12) -> str:
    """The last lines of a file, or "" where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-lines:])


def alive(pid: int) -> bool:
    """Whether a process of that id runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except (OSError, IndexError):
        return False


def started_at(pid: int) -> str:
    """When a process began, in ticks since boot: tells it from a later one of the same id. "" if gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


@dataclass(frozen=True)
class Usage:
    """What a job's processes take together: how many threads, and resident bytes."""

    threads: int
    resident: int


def members(marker: str, pgid: int) -> Iterator[int]:
    """Processes of a job: of its group, or, having left that, with its marker in their environment."""
    needle = marker.encode()
    for name in os.listdir("/proc"):  # noqa: PTH208 - a scan that is left early must not stay open
        if not name.isdigit():
            continue
        try:
            fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            if fields[0] == b"Z":
                continue
            if int(fields[2]) == pgid or needle in Path(f"/proc/{name}/environ").read_bytes():
                yield int(name)
        except (OSError, IndexError, ValueError):
            continue


def usage(pids: Sequence[int]) -> Usage:
    """Threads and resident memory of some processes."""
    page, threads, resident = os.sysconf("SC_PAGE_SIZE"), 0, 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            threads += int(fields[17])
            resident += int(fields[21]) * page
    return Usage(threads, resident)


def kill_members(marker: str, pgid: int, patience: float = 5.0) -> None:
    """Kill a job's group and every process that left it, until none is found."""
    if pgid > 0:
        kill_group(pgid)
    deadline = time.monotonic() + patience
    while found := [pid for pid in members(marker, pgid) if pid != os.getpid()]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(0.01)
