"""The real thing: a cell is an image, a trial a container without network, privileges or a writable root."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from docker.errors import ImageNotFound

import docker
from repro.cells import Cell
from repro.engines import builders, gpu
from repro.engines.base import Check, CheckState, GpuMode, Job, Limits, Prepared, Running, Say, write_request
from repro.engines.client import FAILURES, address_text, connect, no_engine
from repro.engines.container import (
    AttachedRun,
    ContainerRun,
    arguments,
    explain,
    open_to,
    places_inside,
    remove,
    user_for,
)
from repro.engines.images import Images
from repro.engines.nvidia import GpuHost
from repro.engines.process import alive, started_at
from repro.engines.tags import LABEL, cell_tag
from repro.errors import NotReadyError, ReproError


def engine_answers() -> ReproError | None:
    """None where an engine answers and some client can build images; else what is missing."""
    try:
        connect(timeout=5).close()
        builders.chosen()
    except NotReadyError as error:
        return error
    return None


class DockerEngine:
    """Builds images and runs trial containers with one Docker engine."""

    name = "docker"

    def __init__(
        self, state: Path, mode: GpuMode = GpuMode.AUTO, client: docker.DockerClient | None = None,
        host: GpuHost | None = None,
    ) -> None:  # fmt: skip
        self._state = state.resolve()
        self._mode = mode
        self._client = client or connect()
        self._host = host
        self._images = Images(self._client, self._state, self._labels)

    def checks(self) -> list[Check]:
        """Whether the engine answers, what builds images, and how a GPU gets in."""
        version = self._info.get("ServerVersion", "unknown")
        driver = self._info.get("Driver", "unknown")
        rows = [
            Check(
                name="engine",
                state=CheckState.OK,
                evidence=f"Docker {version} ({driver}) at {address_text()}",
            )
        ]
        try:
            builder = builders.chosen()
            evidence = f"{builder.kind} of {builder.program} {builder.version}"
            rows.append(Check(name="builder", state=CheckState.OK, evidence=evidence))
        except NotReadyError as error:
            rows.append(
                Check(name="builder", state=CheckState.FAIL, evidence=error.what, fix=error.next_step)
            )
        return rows

    @property
    def gpu_mode(self) -> GpuMode:
        """How a GPU gets into a container here; what `auto` came to."""
        runtimes, folders = self._info.get("Runtimes") or {}, self._info.get("CDISpecDirs")
        return gpu.decide(self._mode, self._gpu_host, runtimes, folders)

    def present(self, cell: Cell, requirements: Sequence[str] = ()) -> bool:
        """Whether the cell's image stands: one call to the engine."""
        try:
            return self._images.find(cell_tag(cell, requirements)) is not None
        except FAILURES:
            return False

    def prepare(
        self, cell: Cell, *, requirements: Sequence[str], limits: Limits, log: Path, say: Say
    ) -> Prepared:
        """Build the cell's image unless it stands; see `Engine.prepare`.

        Raises:
            BuildError: a step failed or took too long.
            NotReadyError: the engine does not answer, or nothing can build.
        """
        begin = time.monotonic()
        try:
            image, built = self._images.cell(cell, requirements, limits, log.resolve(), say)
        except FAILURES as error:
            raise self._lost(error) from None
        seconds = time.monotonic() - begin
        return Prepared(cell=cell, handle=image.tag, digest=image.content, built=built, seconds=seconds)

    def start(self, prepared: Prepared, job: Job) -> Running:
        """Start a job in a container; see `Engine.start`.

        Raises:
            NotReadyError: the engine, the image or the GPU is not there; no container is left behind.
        """
        access = gpu.GpuAccess() if job.gpu is None else gpu.access(self.gpu_mode, job.gpu, self._gpu_host)
        write_request(job, places_inside(job))
        user = user_for(os.getuid(), os.getgid(), rootless=self._rootless)
        open_to(user, [job.records, job.cache])
        wanted = arguments(
            prepared.cell, job, image=prepared.handle, user=user, gpu=access, labels=self._labels
        )
        try:
            self._client.images.get(prepared.handle)  # a missing one would be looked for in a registry
            container = self._client.containers.create(**wanted)
        except ImageNotFound:
            raise NotReadyError(
                f"the image {prepared.handle} is gone", why="it was removed after it was built",
                next_step="repro build",
            ) from None  # fmt: skip
        except FAILURES as error:
            raise self._refused(error, access) from None
        try:
            if job.terminal:
                return AttachedRun(container, job, builders.chosen().program)
            container.start()
        except BaseException as error:
            remove(container)
            if isinstance(error, FAILURES):
                raise self._refused(error, access) from None
            raise
        return ContainerRun(container, job)

    def sweep(self) -> list[str]:
        """Remove containers of kits that are dead, and build contexts that they left."""
        removed = []
        try:
            labels = [f"{LABEL}.state={self._state_hash}"]
            for container in self._client.containers.list(all=True, filters={"label": labels}):
                if not kit_lives(container.labels):
                    remove(container)
                    removed.append(f"container {container.name}")
        except FAILURES:
            return removed
        return removed

    @cached_property
    def _info(self) -> dict[str, Any]:
        try:
            info: dict[str, Any] = self._client.info()
        except FAILURES as error:
            raise no_engine(error) from None
        return info

    @property
    def _rootless(self) -> bool:
        return any("rootless" in option for option in self._info.get("SecurityOptions") or ())

    @cached_property
    def _gpu_host(self) -> GpuHost:
        return self._host or GpuHost.here()

    @property
    def _labels(self) -> dict[str, str]:
        """Of every container: which results folder and which process of the kit it belongs to."""
        return {f"{LABEL}.state": self._state_hash, **kit_labels()}

    @property
    def _state_hash(self) -> str:
        return hashlib.sha256(str(self._state).encode()).hexdigest()[:16]

    def _lost(self, error: Exception) -> NotReadyError:
        return NotReadyError(
            f"the Docker engine failed: {explain(error)}",
            why="it was stopped, or its disk is full",
            next_step="repro doctor, then the same command again; it goes on where it stopped",
        )

    def _refused(self, error: Exception, access: gpu.GpuAccess) -> NotReadyError:
        """The error for a container that the engine would not start."""
        with suppress(*FAILURES):
            self._client.ping()
            if access.mode is GpuMode.NONE:
                return self._lost(error)
            return NotReadyError(
                f"the engine refused the GPU ({access.mode}): {explain(error)}",
                why=_WHY.get(access.mode, ""),
                next_step=_FIX.get(access.mode, ""),
            )
        return no_engine(error)


_WHY = {
    GpuMode.TOOLKIT: "that mode needs NVIDIA's container toolkit, registered with the engine",
    GpuMode.CDI: "that mode needs Docker 25 or later and a device description in /etc/cdi",
    GpuMode.DEVICES: "that mode hands over device nodes, and the engine may not use them",
}
_FIX = {
    GpuMode.TOOLKIT: "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker; "
    "without the toolkit, --gpu devices",
    GpuMode.CDI: "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml; "
    "without the toolkit, --gpu devices",
    GpuMode.DEVICES: "--gpu toolkit where NVIDIA's container toolkit is installed",
}


def kit_labels() -> dict[str, str]:
    """Labels that tell which process of the kit a container belongs to."""
    pid = os.getpid()
    return {
        f"{LABEL}.pid": str(pid),
        f"{LABEL}.started": started_at(pid),
        f"{LABEL}.host": os.uname().nodename,
    }


def kit_lives(labels: Mapping[str, str]) -> bool:
    """Whether the kit that started a container runs; one of another machine counts as alive."""
    if labels.get(f"{LABEL}.host") != os.uname().nodename:
        return True
    pid = int(labels.get(f"{LABEL}.pid") or 0)
    return pid > 0 and alive(pid) and started_at(pid) == labels.get(f"{LABEL}.started")
