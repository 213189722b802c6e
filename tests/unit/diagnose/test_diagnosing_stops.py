"""A diagnosis draws nothing from trials that could not run."""

import pytest
from fake_engine import LOST, FakeEngine, bench

from repro.diagnose.diagnosing import Question, diagnose
from repro.diagnose.shots import Range
from repro.errors import NotReadyError
from repro.run import Order
from repro.store import Ledger


@pytest.fixture
def kit(tmp_path):
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        yield bench(tmp_path, ledger, FakeEngine())


@pytest.fixture
def gone(kit):
    """A bench whose engine goes away once the ledger holds failures enough to diagnose."""
    kit.engine.trial = lambda cell, seed: "FAILED"
    kit.run(Order(seeds=range(40)))
    kit.engine.begin = lambda cell: LOST
    return kit


def ask(kit):
    question = Question(target=kit.target(), gpu=None, trials=40, block=20, budget=600)
    return diagnose(kit.runner, question, clock=kit.engine.clock, say=kit.said.append)


def test_trials_to_see_the_failure_in(kit):
    kit.engine.trial = lambda cell, seed: LOST if seed == 3 else "PASSED"
    with pytest.raises(NotReadyError, match="could not run: the engine went away") as raised:
        ask(kit)
    assert raised.value.next_step == "`repro doctor`, then the same command; it goes on where it stopped"
    assert kit.outcomes[2] == "PASSED"


def test_trials_of_an_experiment(gone):
    with pytest.raises(NotReadyError, match="the trials of an experiment could not run in"):
        ask(gone)


@pytest.mark.parametrize("fire", [lambda at: at.fire([1]), lambda at: at.fire_series({"": [1], "x": [1]})])
def test_a_range_is_no_place_to_shoot_from(gone, fire):
    target = gone.target()
    at = Range(runner=gone.runner, target=target, prepared=gone.runner.prepare(target), gpu=None)
    with pytest.raises(NotReadyError, match="the engine went away"):
        fire(at)
