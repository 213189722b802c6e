"""What a build's look at the network leaves in the engine: nothing, or what the next run finds."""

from __future__ import annotations

import pytest
from docker.errors import APIError

from repro.engines.images import Images
from repro.engines.indexes import Indexes

LABELS = {"a": "label"}


class FakeEngine:
    """An engine with a bridge, and one container that starts or not and comes to a status."""

    name = "bridge"

    def __init__(self, status=0, start_fails=False):
        self.containers = self.networks = self
        self.status, self.start_fails = status, start_fails
        self.made = self.removed = 0

    def list(self):
        return [self]

    def create(self, image, command, *, network_mode, labels):
        assert (image, network_mode, labels) == ("repro-base:1", "bridge", LABELS)
        self.made += 1
        return self

    def start(self):
        if self.start_fails:
            raise APIError("network bridge not found")

    def wait(self):
        return {"StatusCode": self.status}

    def remove(self, *, force, v):
        assert (force, v) == (True, True)
        self.removed += 1


@pytest.mark.parametrize(
    ("engine", "network"),
    [
        (FakeEngine(), "default"),
        (FakeEngine(status=1), "host"),
        (FakeEngine(start_fails=True), "host"),
    ],
    ids=["it reaches the index", "it does not", "it does not start"],
)
def test_the_look_at_the_network_leaves_no_container(engine, network, tmp_path):
    images = Images(engine, tmp_path, LABELS)
    assert images._network_for(Indexes(), "repro-base:1") == network
    assert (engine.made, engine.removed) == (1, 1)
