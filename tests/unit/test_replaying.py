"""`repro replay`: a failure that is a function of its inputs is told from one that is not."""

import dataclasses
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_engine import FakeEngine, bench, cell, subject

from repro.cli.replay import _print
from repro.errors import NotReproducedError
from repro.replaying import Replaying, to_json
from repro.run import Order, Target
from repro.store import Ledger

A, B = cell("3.6.0"), cell("3.7.1")
CHANCE = random.Random(3)


@pytest.fixture
def replay(tmp_path):
    """Run 20 trials in one cell, then replay what failed there."""

    def go(outcome, *, seeds=(), keeps=True, cells=(A, B), fresh=2):
        engine = FakeEngine(trial=outcome, keeps=keeps)
        with Ledger.open(tmp_path / "ledger.sqlite") as ledger, ThreadPoolExecutor(1) as pool:
            runner = bench(tmp_path, ledger, engine).runner
            tested = subject(tmp_path)
            target = Target(cell=A, subject=tested)
            runner.run(target, runner.prepare(target), Order(seeds=range(20)))
            replaying = Replaying(
                runner=runner, subject=tested, gpu=None, times=6, fresh=fresh, clock=engine.clock
            )
            return replaying.run(cells, A, seeds, pool)

    return go


def by_seed(cell, seed):
    return "FAILED" if seed % 5 == 1 else "PASSED"


def test_a_function_of_the_inputs(replay):
    found = replay(by_seed)
    assert "the failure is a function of the inputs" in found.said
    assert "of 1 other cell, they always fail in 1, never in 0" in found.said
    assert {row.seed for row in found.rows} == {1, 6, 11, 16}
    assert all((row.same, row.fresh) == ((6, 6), (2, 2)) for row in found.rows)


def test_what_was_not_asked_is_not_told(replay, capsys):
    found = replay(by_seed, fresh=0)
    assert {(row.same, row.fresh, row.always) for row in found.rows} == {((6, 6), None, True)}
    assert all("fresh_processes" not in row for row in to_json(found)["rows"])
    _print(found)
    told = capsys.readouterr().out
    assert "fresh" not in told
    assert told.count("6/6") == len(found.rows) == 8
    assert "they fail every time, in one process;" in told


def test_fresh_processes_have_a_column_where_they_were_asked_for(replay, capsys):
    found = replay(by_seed)
    assert to_json(found)["rows"][0]["fresh_processes"] == {"failed": 2, "trials": 2}
    _print(found)
    told = capsys.readouterr().out
    assert "fresh processes" in told
    assert told.count("2/2") == 8


def test_a_cell_in_which_the_inputs_pass(replay):
    found = replay(lambda cell, seed: by_seed(cell, seed) if cell == A else "PASSED")
    assert "always fail in 0, never in 1" in found.said


def test_no_function_of_the_inputs(replay):
    found = replay(lambda cell, seed: "FAILED" if CHANCE.random() < 0.5 else "PASSED", cells=(A,))
    assert "something beside the inputs decides" in found.said


def test_other_elements_from_run_to_run_are_no_function_of_the_inputs(replay):
    found = replay(by_seed, cells=(A,))
    rows = [dataclasses.replace(row, places=frozenset({"a", "b"})) for row in found.rows]
    said = dataclasses.replace(found, rows=rows).said
    assert "but not at the same elements: something beside the inputs decides, too" in said
    assert "is a function of" not in said


def test_a_cell_that_cannot_run_them_stops_no_other(replay):
    found = replay(lambda cell, seed: by_seed(cell, seed) if cell == A else "COMPILE_ERROR")
    assert [each.triton for each, _ in found.broken] == ["3.7.1"]
    assert to_json(found)["broken"][0]["cell"] == B.id


def test_seeds_are_chosen(replay):
    assert {row.seed for row in replay(by_seed, seeds=(6,)).rows} == {6}
    with pytest.raises(NotReproducedError, match="no inputs of these seeds") as refused:
        replay(by_seed, seeds=(2,))
    assert "1, 6, 11, 16" in refused.value.why


def test_nothing_was_kept(replay):
    with pytest.raises(NotReproducedError, match="no failing inputs were kept"):
        replay(by_seed, keeps=False)
