"""The image that everything begins with: a public one, one of the user's, or one made from this machine."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from docker.errors import APIError, ImageNotFound

import docker
from repro.cells import Cell
from repro.engines import indexes, pythons
from repro.engines.base import Say
from repro.engines.builders import Builder
from repro.engines.client import FAILURES, connect
from repro.engines.process import run_logged
from repro.engines.tags import BASE_IMAGE_VARIABLE, resources
from repro.errors import BuildError

REGISTRY_SECONDS = 8.0

PINNED = {
    "3.9": "sha256:a02e9c5406c416c504d6c9a1a306ff4080c3173f1008d192f953bd20382a2d5c",
    "3.10": "sha256:68d914ec641a0b69267ce65184d000a2bc3a9ee2590ab702b82250ab2385735a",
    "3.11": "sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b",
    "3.12": "sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254",
    "3.13": "sha256:67a1e1f215ccda113cfc024e8639049257e88f273898f595b61476d128d387e8",
    "3.14": "sha256:9ab8d9c8514b44f90cf0029dd42fdd7e9e211e639c8b995304cc04568dee900f",
}
"""Digests of `python:VERSION-slim-bookworm`. Where a registry no longer has one, the tag is taken instead."""


@dataclass(frozen=True, kw_only=True)
class Root:
    """An image to begin with.

    Args:
        image: reference that the engine knows.
        origin: what it is, for labels.
        held: packages that it brings along and that must not be fetched again.
    """

    image: str
    origin: str
    held: dict[str, str] = field(default_factory=dict)


def find_root(
    client: docker.DockerClient,
    builder: Builder,
    cell: Cell,
    *,
    tag: str,
    log: Path,
    timeout: float,
    say: Say,
) -> Root:
    """The image to begin with; a registry that does not answer costs a few seconds at most.

    Args:
        tag: name for an image made from this machine.

    Raises:
        BuildError: there is none with the cell's Python.
    """
    if own := os.environ.get(BASE_IMAGE_VARIABLE):
        if _present(client, own) or _pull(builder, own, log, timeout):
            return Root(image=own, origin=own)
        raise BuildError(
            f"the base image {own} is neither here nor can it be pulled",
            why=f"{BASE_IMAGE_VARIABLE} names it",
            next_step=f"docker pull {own}, or unset {BASE_IMAGE_VARIABLE}; the log is {log}",
        )
    for reference in _public(cell.python):
        if _present(client, reference):
            return Root(image=reference, origin=reference)
        if _registry_has(reference):
            say(
                f"pulling {reference}"
                + ("" if "@" in reference else ": the tag as it is now, with no digest to hold it to")
            )
            if _pull(builder, reference, log, timeout):
                return Root(image=reference, origin=reference)
    return _from_host(builder, cell, tag=tag, log=log, timeout=timeout, say=say)


def _public(minor: str) -> list[str]:
    """References to the public image of a Python version, the pinned one first."""
    tag = f"python:{minor}-slim-bookworm"
    return [f"{tag}@{PINNED[minor]}", tag] if minor in PINNED else [tag]


def _present(client: docker.DockerClient, reference: str) -> bool:
    try:
        client.images.get(reference)
    except ImageNotFound:
        return False
    return True


def _registry_has(reference: str) -> bool:
    """Whether the engine's registry answers and has it; nothing is downloaded."""
    try:
        with_limit = connect(timeout=REGISTRY_SECONDS)
        try:
            with_limit.api.inspect_distribution(reference)  # type: ignore[no-untyped-call]
        finally:
            with_limit.close()
    except (*FAILURES, APIError):
        return False
    return True


def _pull(builder: Builder, reference: str, log: Path, timeout: float) -> bool:
    return run_logged([builder.program, "pull", reference], log=log, timeout=timeout).ok


def _from_host(builder: Builder, cell: Cell, *, tag: str, log: Path, timeout: float, say: Say) -> Root:
    """An image of this machine's own Python, with a notice.

    Raises:
        BuildError: this machine has no such Python, or the image could not be made.
    """
    python = _holding_torch(cell)
    held = python.held if python else {}
    python = python or next(iter(pythons.find(cell.python)), None)
    if python is None:
        raise BuildError(
            f"{cell.id}: no base image with Python {cell.python} can be had",
            why="no registry answers from here, and this machine's own Pythons are "
            + ", ".join(pythons.versions_here()),
            next_step=f"leave such cells out with --only, install Python {cell.python}, "
            f"or set {BASE_IMAGE_VARIABLE} to an image that is here",
        )
    say(f"no registry answers: the base image is made from this machine's {python.path}")
    flags = ["--whole"] if cell.on_gpu else []
    flags += ["--packages"] if held else []
    script = str(resources() / "base_from_host.py")
    command = [sys.executable, script, tag, "--python", str(python.path), "--docker", builder.program, *flags]
    made = run_logged(command, log=log, timeout=timeout)
    if not made.ok:
        last = (made.output.strip().splitlines() or ["no output"])[-1]
        raise BuildError(
            f"the base image could not be made from {python.path}: {last}",
            why="the time limit was reached" if made.code is None else "",
            next_step=f"the whole output is in {log}",
        )
    return Root(image=tag, origin=f"this machine's Python {python.minor}", held=held)


def _holding_torch(cell: Cell) -> pythons.PythonHere | None:
    """An interpreter that has a torch already, where none could be fetched for a GPU cell.

    Any torch: the base is shared by cells of every torch, whichever of them is built first.
    """
    if not cell.on_gpu or not indexes.configured().only_reachable().no_index:
        return None
    return pythons.holding(cell.python, "torch")
