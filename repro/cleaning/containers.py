"""The kit's own things in a Docker engine, by their labels and names."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

from docker.errors import ImageNotFound, NotFound

import docker
from repro.cleaning.items import Item, Kind
from repro.engines.client import FAILURES
from repro.engines.container import explain
from repro.engines.docker import kit_lives
from repro.engines.tags import LABEL

STATE_LABEL = f"{LABEL}.state"
_STEPS = ("cell", "torch", "base", "host")
"""Images, those that stand on others first."""
_NAME = re.compile(rf"repro-({'|'.join(_STEPS)}):[0-9a-f]{{16}}")
_GLANCE_SECONDS = 5.0


def engine_items(client: docker.DockerClient) -> tuple[list[Item], list[str]]:
    """The kit's things that nobody uses, and sentences about those that are in use.

    A thing is the kit's if it has the kit's label; an image must have a name of the kit's, too, because
    images that users build on one of these inherit its labels.
    """
    containers, busy = _containers(client)
    return [*containers, *_images(client), *_volumes(client), *_networks(client)], busy


def run_goes_on(client: docker.DockerClient) -> bool:
    """Whether a process of the kit on this machine runs a trial now, for whatever results folder."""
    here = os.uname().nodename
    return any(
        container.labels.get(f"{LABEL}.host") == here and kit_lives(container.labels)
        for container in client.containers.list(all=True, filters={"label": STATE_LABEL})
    )


def _containers(client: docker.DockerClient) -> tuple[list[Item], list[str]]:
    items, busy = [], []
    for container in client.containers.list(all=True, filters={"label": STATE_LABEL}):
        if kit_lives(container.labels):
            busy.append(f"container {container.name} belongs to a run that goes on")
            continue
        remove = partial(_try, container.remove, force=True, v=True)
        about = "a trial of a run that was killed"
        items.append(Item(kind=Kind.CONTAINER, name=str(container.name), about=about, remove=remove))
    return items, busy


def _images(client: docker.DockerClient) -> Iterator[Item]:
    found = [
        (tag, image)
        for image in client.images.list(filters={"label": f"{LABEL}.step"})
        for tag in image.tags
        if _NAME.fullmatch(tag)
    ]
    for tag, image in sorted(found, key=lambda pair: (_STEPS.index(_step(pair[0])), pair[0])):
        title = image.labels.get("org.opencontainers.image.title") or "made from this machine"
        yield Item(
            kind=Kind.IMAGE, name=tag, about=title, bytes=image.attrs.get("Size"),
            remove=partial(_try, client.images.remove, tag),
        )  # fmt: skip


def _step(tag: str) -> str:
    return tag.removeprefix("repro-").partition(":")[0]


def _volumes(client: docker.DockerClient) -> Iterator[Item]:
    for volume in client.volumes.list(filters={"label": STATE_LABEL}):
        remove = partial(_try, volume.remove)
        yield Item(kind=Kind.VOLUME, name=volume.name, about="a volume of the kit's", remove=remove)


def _networks(client: docker.DockerClient) -> Iterator[Item]:
    for network in client.networks.list(filters={"label": STATE_LABEL}):
        remove = partial(_try, network.remove)
        yield Item(kind=Kind.NETWORK, name=str(network.name), about="a network of the kit's", remove=remove)


def _try(remove: Any, *arguments: Any, **options: Any) -> str:
    """Remove it; why it could not be, or ""."""
    try:
        remove(*arguments, **options)
    except (NotFound, ImageNotFound):
        return ""
    except FAILURES as error:
        return explain(error)
    return ""


def dead_containers() -> list[str]:
    """Names of containers that killed runs left behind; none where the docker command does not answer."""
    program = shutil.which("docker")
    if program is None:
        return []
    command = [program, "ps", "--all", "--filter", f"label={STATE_LABEL}", "--format", "{{.ID}}"]
    ids = _output(command).split()
    shown = json.loads(_output([program, "inspect", *ids]) or "[]") if ids else []
    return [one["Name"].lstrip("/") for one in shown if not kit_lives(one["Config"]["Labels"] or {})]


def _output(command: list[str]) -> str:
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=_GLANCE_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout if asked.returncode == 0 else ""
