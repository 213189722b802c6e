"""A test that seeds generators itself is noticed, and one that leaves them alone is not."""

import random

import numpy
import pytest
import torch

from repro.trial.own_seeds import OwnSeeds
from repro.trial.seeding import Seeding

IN_A_FIXTURE = """\
import random
import numpy
import pytest
import torch

@pytest.fixture(autouse=True)
def seeds():
    random.seed(42)
    torch.manual_seed(42)
"""
DRAWS = "import numpy, torch\ndef test_it():\n    assert torch.rand(1).item() + numpy.random.rand() >= 0\n"


@pytest.fixture(autouse=True)
def _restored():
    states = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    yield
    random.setstate(states[0])
    numpy.random.set_state(states[1])
    torch.set_rng_state(states[2])


def found(test, seeds=range(8)):
    seeding, own = Seeding(), OwnSeeds()
    told = []
    for seed in seeds:
        seeding.seed(seed)
        test()
        told += own.look(seed)
    return told


@pytest.mark.parametrize(
    ("test", "libraries"),
    [
        (lambda: None, []),
        (lambda: (random.random(), numpy.random.rand(3), torch.rand(3)), []),
        (lambda: torch.manual_seed(42), ["torch"]),
        (lambda: (torch.manual_seed(0), torch.rand(random.randrange(9))), ["torch"]),
        (lambda: (numpy.random.seed(1), numpy.random.rand(2)), ["numpy"]),
        (lambda: (random.seed(5), numpy.random.seed(5), torch.manual_seed(5)), ["random", "numpy", "torch"]),
    ],
)
def test_libraries_that_the_test_seeds_are_told_once(test, libraries):
    assert found(test) == libraries


def test_the_same_seed_again_tells_nothing():
    assert found(lambda: torch.rand(3), seeds=[7] * 8) == []


def test_a_generator_of_another_kind_is_left_out():
    before = numpy.random.get_bit_generator()
    numpy.random.set_bit_generator(numpy.random.PCG64(3))
    try:
        own = OwnSeeds()
        assert [own.look(seed) for seed in (1, 2)] == [[], ["random", "torch"]]
    finally:
        numpy.random.set_bit_generator(before)


def test_a_fixture_that_seeds_is_recorded_once_a_block(run_block):
    done = run_block({"conftest.py": IN_A_FIXTURE, "test_subject.py": DRAWS})
    assert done.outcomes == ["PASSED"] * 3
    assert [event["libraries"] for event in done.of("own_seeds")] == [["random", "torch"]]


def test_repetitions_of_one_seed_record_nothing(run_block):
    files = {"conftest.py": IN_A_FIXTURE, "test_subject.py": DRAWS}
    assert run_block(files, mode="repeat", seeds=[4, 4, 4]).of("own_seeds") == []
    assert run_block({"test_subject.py": DRAWS, "conftest.py": ""}).of("own_seeds") == []
