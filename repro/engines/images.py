"""From docker/Dockerfile to images: base, torch, cell, each built once and found by its hash."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from docker.errors import ImageNotFound

import docker
from repro import __version__
from repro.cells import Cell
from repro.engines import bases, builders, packages, pythons
from repro.engines.base import Limits, Say
from repro.engines.client import FAILURES
from repro.engines.indexes import Indexes
from repro.engines.locking import locked
from repro.engines.messages import build_failed
from repro.engines.resolver import Pin
from repro.engines.tags import LABEL, base_tag, cell_tag, digest, resources, scripts, torch_tag
from repro.engines.wheels import readable

PTXAS_HOME = "/opt/repro/ptxas"
PROBE_SECONDS = 4


@dataclass(frozen=True, kw_only=True)
class Standing:
    """An image that stands: its name, the hash of what went into it, what its base brought along."""

    tag: str
    content: str
    held: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """One request for a cell: everything that the steps share."""

    cell: Cell
    requirements: Sequence[str]
    log: Path
    deadline: float
    say: Say

    @property
    def left(self) -> float:
        return max(0.1, self.deadline - time.monotonic())


_Step = Callable[[str, _Wanted], None]
"""Builds the image of a name."""


class Images:
    """Finds and builds the images of cells with one engine.

    Args:
        client: of the engine.
        state: folder for locks and build contexts.
        labels: of every container that is run, so that one of a killed kit is found.
    """

    def __init__(self, client: docker.DockerClient, state: Path, labels: Mapping[str, str]) -> None:
        self._client = client
        self._state = state
        self._labels = dict(labels)
        self._network: str | None = None
        self._network_lock = threading.Lock()

    def find(self, tag: str) -> Standing | None:
        """The image of that name, by one call to the engine; None where there is none."""
        try:
            image = self._client.images.get(tag)
        except ImageNotFound:
            return None
        labels = image.labels
        held = json.loads(labels.get(f"{LABEL}.held") or "{}")
        return Standing(tag=tag, content=labels.get(f"{LABEL}.content") or str(image.id), held=held)

    def cell(
        self, cell: Cell, requirements: Sequence[str], limits: Limits, log: Path, say: Say
    ) -> tuple[Standing, bool]:
        """The cell's image, and whether it was built now.

        Raises:
            BuildError: a step failed.
        """
        deadline = time.monotonic() + limits.build_timeout
        wanted = _Wanted(cell=cell, requirements=requirements, log=log, deadline=deadline, say=say)
        return self._step(cell_tag(cell, requirements), wanted, self._build_cell)

    def _step(self, tag: str, wanted: _Wanted, build: _Step) -> tuple[Standing, bool]:
        """Find an image or build it; whoever else wants the same one waits."""
        if standing := self.find(tag):
            return standing, False
        with locked(self._state / "locks" / tag.replace(":", "-")):
            if standing := self.find(tag):
                return standing, False
            build(tag, wanted)
            standing = self.find(tag)
            assert standing is not None
            return standing, True

    def _build_base(self, tag: str, wanted: _Wanted) -> None:
        cell, builder = wanted.cell, builders.chosen()
        host_tag = "repro-host:" + tag.partition(":")[2]
        root = bases.find_root(
            self._client, builder, cell, tag=host_tag, log=wanted.log, timeout=wanted.left, say=wanted.say
        )
        content = digest([self._client.images.get(root.image).id, scripts()])
        labels = {"held": json.dumps(root.held), "origin": root.origin, "content": content}
        order = {"python": cell.python, "compiler": cell.on_gpu, "environment": {}}
        network = "default" if self._has_bridge() else "host"
        self._build("base", root.image, tag, wanted, order, labels, network=network)
        if root.image == host_tag:  # its layers live on in the base; the name would only be in the way
            self._client.images.remove(host_tag, noprune=True)

    def _build_cell(self, tag: str, wanted: _Wanted) -> None:
        cell = wanted.cell
        base, _ = self._step(base_tag(cell), wanted, self._build_base)
        plan = packages.plan(cell, wanted.requirements, base.held)

        def build_torch(tag: str, wanted: _Wanted) -> None:
            self._install("torch", base, tag, wanted, plan, [(plan.torch, "")])

        parent = self._step(torch_tag(cell), wanted, build_torch)[0] if plan.torch else base
        batches: list[tuple[Sequence[Pin], str]] = [(plan.cell, "")]
        if plan.ptxas:
            batches.append(([plan.ptxas], PTXAS_HOME))
        self._install("cell", parent, tag, wanted, plan, batches)

    def _install(
        self,
        step: str,
        parent: Standing,
        tag: str,
        wanted: _Wanted,
        plan: packages.Plan,
        batches: Sequence[tuple[Sequence[Pin], str]],
    ) -> None:
        wanted.say(f"{wanted.cell.id}: building the {step} image")
        pins = [pin for batch, _ in batches for pin in batch]
        content = digest([parent.content, sorted(pin.requirement for pin in pins), scripts()])
        labels = {"content": content, "held": json.dumps(dict(parent.held))}
        remote = any(pin.wheel is None for pin in pins)
        order = {
            "environment": {"UV_HTTP_TIMEOUT": "120", "NO_COLOR": "1", "UV_PYTHON_DOWNLOADS": "never"},
            "uv_flags": _remote_only(plan.indexes).uv_flags() if remote else ["--no-index"],
            "batches": [
                {"target": target, "pins": [_text(pin) for pin in batch]}
                for batch, target in batches
                if batch  # empty where the base holds all of it already
            ],
        }
        network = self._network_for(plan.indexes, parent.tag) if remote else "none"
        wheels = [pin.wheel for pin in pins if pin.wheel]
        self._build(
            step,
            parent.tag,
            tag,
            wanted,
            order,
            labels,
            network=network,
            wheels=wheels,
            cert=plan.indexes.cert,
        )

    def _build(
        self,
        step: str,
        parent: str,
        tag: str,
        wanted: _Wanted,
        order: Mapping[str, object],
        labels: Mapping[str, str],
        *,
        network: str,
        wheels: Sequence[Path] = (),
        cert: Path | None = None,
    ) -> None:
        builder = builders.chosen()
        if builder.kind is builders.BuilderKind.CLASSIC:
            network = "host"  # where the kit's own server is
        with self._context(order, wheels, cert) as context:
            build = builders.Build(
                context=context,
                step=step,
                parent=parent,
                tag=tag,
                network=network,
                labels=_oci(step, wanted.cell) | {f"{LABEL}.{key}": text for key, text in labels.items()},
            )
            done = builders.build(builder, build, log=wanted.log, timeout=wanted.left)
        if not done.ok:
            raise build_failed(wanted.cell, f"the {step} image", done, wanted.log)

    @contextmanager
    def _context(
        self, order: Mapping[str, object], wheels: Sequence[Path], cert: Path | None
    ) -> Iterator[Path]:
        """A build context that holds what one step needs, gone afterwards."""
        home = self._state / "tmp"
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="context-", dir=home) as name:
            context = Path(name)
            for file in ("Dockerfile", "step.py"):
                shutil.copyfile(resources() / file, context / file)
            (context / "order.json").write_text(json.dumps(order), encoding="utf-8")
            (context / "wheels").mkdir()
            for wheel in wheels:
                if readable(wheel, context / "wheels") == wheel:
                    _place(wheel, context / "wheels" / wheel.name)
            if "batches" in order:
                _place(Path(pythons.uv_program()), context / "uv")
            if cert:
                shutil.copyfile(cert, context / "ca.pem")
            yield context

    def _has_bridge(self) -> bool:
        return any(network.name == "bridge" for network in self._client.networks.list())

    def _network_for(self, indexes: Indexes, image: str) -> str:
        """`default` where an index can be reached over the engine's own network, else `host`."""
        with self._network_lock:
            if self._network is None:
                reaches = self._has_bridge() and self._reaches(indexes, image)
                self._network = "default" if reaches else "host"
            return self._network

    def _reaches(self, indexes: Indexes, image: str) -> bool:
        proxy = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY")
        parts = urlsplit(proxy or _remote_only(indexes).default)
        port = parts.port or (80 if parts.scheme == "http" else 443)
        code = f"import socket; socket.create_connection(({parts.hostname!r}, {port}), {PROBE_SECONDS})"
        made = None
        try:  # `containers.run(remove=True)` leaves a container behind that does not start
            made = self._client.containers.create(
                image, ["python3", "-c", code], network_mode="bridge", labels=self._labels
            )
            made.start()
            return bool(made.wait()["StatusCode"] == 0)
        except FAILURES:
            return False
        finally:
            if made is not None:
                with suppress(*FAILURES):
                    made.remove(force=True, v=True)


def _text(pin: Pin) -> str:
    return f"wheels/{pin.wheel.name}" if pin.wheel else pin.requirement


def _remote_only(indexes: Indexes) -> Indexes:
    """Indexes that a build can see: what lies in folders of this machine comes with the context."""
    urls = [url for url in indexes.urls if not url.startswith("file:")]
    return Indexes(
        default=urls[-1] if urls else indexes.default,
        extra=tuple(urls[:-1]),
        find_links=tuple(place for place in indexes.find_links if "://" in place and "file:" not in place),
        trusted=indexes.trusted,
        no_index=not urls,
    )


def _place(source: Path, target: Path) -> None:
    """A hard link where the file system allows one, else a copy."""
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copy(source, target)


def _oci(step: str, cell: Cell) -> dict[str, str]:
    title = {"base": f"Python {cell.python}", "torch": f"torch {cell.torch} {cell.cuda}", "cell": cell.id}[
        step
    ]
    return {
        "org.opencontainers.image.title": f"repro {step}: {title}",
        "org.opencontainers.image.description": "Runs a GPU kernel's test in one combination of versions.",
        "org.opencontainers.image.version": __version__,
        "org.opencontainers.image.licenses": "MIT",
        f"{LABEL}.step": step,
    }
