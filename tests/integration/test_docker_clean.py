"""`repro clean` against a real engine: the kit's own things go, others of like names stay."""

from __future__ import annotations

import io
import itertools
import os
import tarfile

import pytest

from repro.cleaning import dead_containers, engine_items
from repro.cleaning.containers import STATE_LABEL
from repro.engines.client import connect
from repro.engines.docker import kit_labels
from repro.engines.tags import LABEL

pytestmark = [pytest.mark.docker, pytest.mark.slow]
NUMBERS = itertools.count()
DEAD = {STATE_LABEL: "0", **kit_labels(), f"{LABEL}.pid": "999999999"}
ALIVE = {STATE_LABEL: "0", **kit_labels()}


@pytest.fixture(scope="module")
def client():
    client = connect()
    yield client
    client.close()


@pytest.fixture
def made(client):
    """Makes things with names of this test's own, and removes what is left of them."""
    maker = Maker(client)
    yield maker
    maker.remove()


class Maker:
    """Things in the engine, each a few bytes."""

    def __init__(self, client) -> None:
        self.client, self.things, self.tags = client, [], []

    def image(self, repository: str, *, labels: dict[str, str], parent: str = "") -> str:
        """An image with one file in it, or one that stands on another image."""
        tag = f"{repository}:{os.getpid():08x}{next(NUMBERS):08x}"
        if parent:
            container = self.client.containers.create(parent, ["true"])
            container.commit(repository=repository, tag=tag.partition(":")[2])
            container.remove()
        else:
            changes = [f"LABEL {name}={value}" for name, value in labels.items()]
            self.client.api.import_image_from_data(_tar(), repository, tag.partition(":")[2], changes)
        self.tags.append(tag)
        return tag

    def container(self, image: str, labels: dict[str, str]) -> str:
        name = f"repro-clean-test-{os.getpid()}-{next(NUMBERS)}"
        self.things.append(self.client.containers.create(image, ["true"], name=name, labels=labels))
        return name

    def volume(self, labels: dict[str, str]) -> str:
        name = f"repro-clean-test-{os.getpid()}-{next(NUMBERS)}"
        self.things.append(self.client.volumes.create(name, labels=labels))
        return name

    def remove(self) -> None:
        for thing in reversed(self.things):
            try:
                thing.remove(force=True)
            except Exception as error:  # what is gone already
                print(error)
        for tag in reversed(self.tags):
            if self.client.images.list(tag):
                self.client.images.remove(tag, force=True)


def _tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        content = f"{os.getpid()} {next(NUMBERS)}".encode()
        entry = tarfile.TarInfo("file")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def clean_only(client, names: set[str]) -> dict[str, str]:
    """Remove those of the kit's things that this test made: others may share the engine. Why some stayed."""
    items, _ = engine_items(client)
    return {item.name: item.remove() for item in items if item.name in names}


def test_only_the_kits_own_things_go(client, made):
    own = made.image("repro-base", labels={f"{LABEL}.step": "base"})
    like = made.image("repro-base", labels={"step": "base"})
    mine = made.image("clean-test-mine", labels={}, parent=own)
    dead, alive = made.container(own, DEAD), made.container(own, ALIVE)
    foreign = made.container(like, {})
    labelled, plain = made.volume({STATE_LABEL: "0"}), made.volume({})
    everything = {own, like, mine, dead, alive, foreign, labelled, plain}

    items, busy = engine_items(client)
    assert {item.name for item in items} & everything == {own, dead, labelled}
    assert f"container {alive} belongs to a run that goes on" in busy
    assert dead in dead_containers()
    assert {alive, foreign} & set(dead_containers()) == set()

    stayed = clean_only(client, everything)
    assert {name for name, why in stayed.items() if why} == {own}, "a run that goes on has a container of it"
    assert "is using" in stayed[own] or "in use" in stayed[own] or "being used" in stayed[own]
    names = {container.name for container in client.containers.list(all=True)}
    assert (dead in names, alive in names, foreign in names) == (False, True, True)
    volumes = {volume.name for volume in client.volumes.list()}
    assert (labelled in volumes, plain in volumes) == (False, True)

    client.containers.get(alive).remove()
    assert clean_only(client, everything) == {own: ""}
    tags = {tag for image in client.images.list() for tag in image.tags}
    assert (own in tags, like in tags, mine in tags) == (False, True, True)
    container = client.containers.create(mine, ["true"])  # built on the kit's, and whole still
    container.remove()


def test_a_second_name_of_an_image_keeps_it(client, made):
    own = made.image("repro-cell", labels={f"{LABEL}.step": "cell"})
    identity = client.images.get(own).id
    client.images.get(own).tag("clean-test-kept", "1")
    made.tags.append("clean-test-kept:1")
    assert clean_only(client, {own}) == {own: ""}
    assert client.images.get("clean-test-kept:1").id == identity
