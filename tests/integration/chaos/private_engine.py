"""A Docker engine of our own, to be killed: with a socket and a store of its own, on a small disk."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LABEL = "io.github.repro-kit.state"
DISK = "3g"
_NUMBERS = itertools.count()


@dataclass
class PrivateEngine:
    """An engine with a bridge of its own that leads nowhere, so that it disturbs no other one of the machine.

    Args:
        folder: for its store, its socket and its log.
        bridge: name of its network interface.
        process: that it is, while it runs.
    """

    folder: Path
    bridge: str
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> str:
        """Its address, for DOCKER_HOST."""
        return f"unix://{self.folder}/engine.sock"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        # What a killed engine left: where nobody reaps its containerd, a new one would wait for that.
        for left in ("engine.pid", "exec/containerd/containerd.pid"):
            (self.folder / left).unlink(missing_ok=True)
        command = [
            "dockerd", "--data-root", str(self.folder / "data"), "--exec-root", str(self.folder / "exec"),
            "-H", self.socket, "-p", str(self.folder / "engine.pid"),
            f"--bridge={self.bridge}", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
        ]  # fmt: skip
        with (self.folder / "engine.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        deadline = time.monotonic() + 60
        while self.docker("ps") is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the engine does not answer; see {self.folder}/engine.log")
            time.sleep(0.2)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it: as its owner would, or at once with SIGKILL, which leaves its containers to themselves."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=90)
            self.process = None

    def restart(self, number: signal.Signals) -> None:
        """Stop it and start it again."""
        self.stop(number)
        self.start()

    def docker(self, *arguments: str) -> str | None:
        """What Docker's client printed, or None where it failed."""
        done = subprocess.run(
            ["docker", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "DOCKER_HOST": self.socket},
        )
        return done.stdout.strip() if done.returncode == 0 else None

    def containers(self) -> list[str]:
        """Ids of all containers of the kit, running or not."""
        return (self.docker("ps", "-aq", "--filter", f"label={LABEL}") or "").split()

    def running(self) -> list[str]:
        """Ids of those that run."""
        return (self.docker("ps", "-q", "--filter", f"label={LABEL}") or "").split()

    def volumes(self) -> list[str]:
        """Names of all volumes."""
        return (self.docker("volume", "ls", "-q") or "").split()

    def dangling(self) -> set[str]:
        """Images without a name."""
        return set((self.docker("images", "-q", "--filter", "dangling=true") or "").split())

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Take all that is left of its disk."""
        filler = self.folder / "data" / "filler"
        try:
            fill(filler)
            yield
        finally:
            filler.unlink(missing_ok=True)


@contextmanager
def private_engine() -> Iterator[PrivateEngine]:
    """An engine whose store is a small disk in memory; removed with all that it holds."""
    folder = Path(tempfile.mkdtemp(prefix="repro-chaos-", dir="/var/lib"))
    (folder / "data").mkdir()
    with _bridge() as bridge:
        made = PrivateEngine(folder, bridge)
        try:
            mount(folder / "data", DISK)
            made.start()
            yield made
        finally:
            with suppress(subprocess.TimeoutExpired):
                made.stop()
            end_shims(folder)
            subprocess.run(
                ["umount", "--recursive", "--lazy", str(folder / "data")], check=False, capture_output=True
            )
            shutil.rmtree(folder, ignore_errors=True)


def end_shims(folder: Path) -> None:
    """End what a killed engine may leave beside its containers: a containerd-shim that nobody talks to."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (process / "cmdline").read_bytes()
            if b"containerd-shim" in line and f"{folder}/".encode() in line:
                os.kill(int(process.name), signal.SIGKILL)


@contextmanager
def _bridge() -> Iterator[str]:
    """A bridge that leads nowhere: an engine that is told to use none removes docker0, whosever that is."""
    number = os.getpid() % 60 * 4 + next(_NUMBERS) % 4
    name = f"chaos{number}"
    _ip("link", "add", name, "type", "bridge")
    try:
        _ip("address", "add", f"10.213.{number}.1/24", "dev", name)
        yield name
    finally:
        _ip("link", "delete", name)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def mount(folder: Path, size: str) -> None:
    """Mount a small disk in memory on a folder; takes root."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=True)


def fill(path: Path, leave: int = 0) -> None:
    """Write a file until the disk is full, but for `leave` bytes."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(2**16)):
            pass
    if leave:
        os.truncate(path, max(0, path.stat().st_size - leave))
