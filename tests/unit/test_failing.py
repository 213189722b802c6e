"""The cells that a command about a failure begins with."""

from dataclasses import replace

import pytest
from fake_engine import FakeEngine, bench, cell

from repro.errors import ExitCode
from repro.failing import failing_cells, none_failing
from repro.run import Order
from repro.store import Ledger

A, B, C = cell("3.5.0"), cell("3.6.0"), cell("3.7.1")
ON_GPU = cell(cuda="cu130")


@pytest.fixture
def make(tmp_path):
    """A bench whose cells fail as often as told, of six trials each."""

    def benched(often, gpu_model=""):
        engine = FakeEngine(trial=lambda cell, seed: "FAILED" if seed < often[cell] else "PASSED")
        kit = bench(tmp_path, ledger, engine, gpu_model=gpu_model)
        for each in often:
            kit.run(Order(seeds=range(6), gpu=0 if gpu_model and each.on_gpu else None), kit.target(each))
        return kit

    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        yield benched


def found(kit, cells, gpu=None):
    at = failing_cells(kit.runner, kit.target().subject, cells, gpu=gpu)
    return [(each, tally.failed, tally.n) for each, tally in at]


def test_the_most_failures_come_first_and_none_not_at_all(make):
    kit = make({A: 1, B: 5, C: 0})
    assert found(kit, [A, B, C]) == [(B, 5, 6), (A, 1, 6)]
    assert found(kit, [A, C]) == [(A, 1, 6)]


def test_among_equals_the_order_stays(make):
    kit = make({A: 2, B: 2})
    assert [each for each, *_ in found(kit, [B, A])] == [B, A]


def test_failures_of_another_subject_do_not_count(make):
    kit = make({A: 2})
    other = replace(kit.target().subject, test="test_other")
    assert failing_cells(kit.runner, other, [A], gpu=None) == []
    other = replace(kit.target().subject, revision="content-other")
    assert failing_cells(kit.runner, other, [A], gpu=None) == []


def test_failures_on_another_gpu_do_not_count(make):
    kit = make({ON_GPU: 4}, gpu_model="NVIDIA H100")
    assert found(kit, [ON_GPU], gpu=0) == [(ON_GPU, 4, 6)]
    kit.runner.gpu_model = "NVIDIA A100"
    assert found(kit, [ON_GPU], gpu=0) == []


def test_the_error_says_what_else_can_be_named(make):
    error = none_failing(make({}).target().subject, "why", otherwise="name one: --seed N")
    assert error.exit_code is ExitCode.NOT_REPRODUCED
    assert str(error) == "the ledger has no failure of test_it in these cells"
    assert error.next_step == "repro matrix, and then this again; or name one: --seed N"
