"""`repro bisect` along versions of Triton, one container each, over a subject whose answer is planted."""

from __future__ import annotations

import json

import pytest
from command_line import Kit

pytestmark = [pytest.mark.slow, pytest.mark.docker]

SINCE = """
    import triton

    def test_it():
        version = tuple(map(int, triton.__version__.split(".")[:2]))
        x = random.random()
        if version >= (3, 8):
            raise RuntimeError("this kernel does not compile")
        assert x > {limit}
"""
AXIS = ("bisect", "--axis", "triton", "--old", "3.6.0", "--new", "3.8.0", "--engine", "docker")


@pytest.fixture
def kit(tmp_path):
    return Kit(tmp_path, tmp_path / "state")


def test_the_version_since_which_it_fails(kit):
    kit.plant(SINCE.format(limit="(0.3 if version >= (3, 7) else 0)"), triton='"3.6.0", "3.7.1", "3.8.0"')
    told = json.loads(kit.run(*AXIS, "--json"))
    assert (told["kind"], told["first_bad"], told["low"]) == ("appears", "3.7.0", "3.6.0")
    assert told["method"] == "replay"
    assert told["skipped"] == ["3.8.0"]
    text = kit.run(*AXIS)
    assert "It first fails at triton 3.7.0" in text
    assert "from triton 3.8.0 on: FAILED_OTHERWISE, this kernel does not compile" in text


def test_the_same_inputs_fail_in_every_version(kit):
    kit.plant(SINCE.format(limit=0.3), triton='"3.6.0", "3.7.1"')
    told = json.loads(kit.run(*AXIS, "--new", "3.7.1", "--json"))
    assert told["kind"] == "throughout"
    assert told["everywhere"]["fails"] == told["everywhere"]["ran"] == 3
    assert "a change in Triton is not the reason" in kit.run(*AXIS, "--new", "3.7.1")
