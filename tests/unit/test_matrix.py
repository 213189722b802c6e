"""Runs over a matrix: when cells stop, that a broken one is alone, and who gets which GPU."""

import itertools
import threading
import time

import pytest
from fake_engine import DIED, HANG, LOST, FakeEngine, bench, cell, press_ctrl_c, subject

from repro.engines.process import run_logged
from repro.errors import BuildError, NotReadyError
from repro.matrix import Goal, MatrixRun, Phase
from repro.run import Interrupted
from repro.stats import Stopping
from repro.store import Ledger
from repro.trial.records import Mode, Outcome

A, B, C = cell("3.6.0"), cell("3.7.1"), cell("3.8.0")
H100 = "NVIDIA H100"


class News(list):
    """A reporter that keeps everything it is told."""

    update = list.append

    def of(self, cell):
        return [result for result in self if result.cell == cell]


@pytest.fixture
def run(tmp_path):
    """Run cells to a goal with an engine that does as it is told; each call as another command would."""

    def go(
        engine, cells=(A, B, C), *, most=20, block=10, mode=Mode.SEEDS, first_seed=0, half_width=None, **more
    ):
        goal = Goal(
            stopping=Stopping(most=most, half_width=half_width), mode=mode, first_seed=first_seed, block=block
        )
        with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
            model = H100 if more.get("gpus") else ""
            kit = bench(tmp_path, ledger, engine, gpu_model=model)
            go.runner, go.news = kit.runner, News()
            matrix = MatrixRun(
                runner=kit.runner, subject=subject(tmp_path), goal=goal, report=go.news, **more
            )
            results = {result.cell: result for result in matrix.run(cells)}
        assert not engine.running
        return results

    return go


def failed(result):
    return result.rate.failed, result.rate.trials


# To the goal, and no further -------------------------------------------------------------------------------


def test_every_cell_runs_the_same_seeds(run):
    engine = FakeEngine(trial=lambda cell, seed: "FAILED" if seed % 4 == 0 else "PASSED")
    results = run(engine, most=25, first_seed=100, jobs=2)
    assert list(results) == [A, B, C]
    assert {failed(result) for result in results.values()} == {(7, 25)}
    assert {result.phase for result in results.values()} == {Phase.DONE}
    seeds = {}
    for request in engine.requests:
        seeds.setdefault(request["cell"], []).extend(request["seeds"])
    assert seeds == {each.id: list(range(100, 125)) for each in (A, B, C)}


def test_a_cell_stops_once_its_rate_is_known_well_enough(run):
    engine = FakeEngine(trial=lambda cell, seed: "FAILED" if cell is A and seed % 2 else "PASSED")
    results = run(engine, (A, B), most=2000, block=50, half_width=0.05)
    assert results[A].rate.trials > 3 * results[B].rate.trials
    for result in results.values():
        assert result.rate.trials % 50 == 0
        assert result.rate.high - result.rate.low <= 0.1
        assert result.note == "the interval is narrow enough"


def test_a_second_run_starts_nothing(run):
    first = run(FakeEngine())
    engine = FakeEngine()
    again = run(engine)
    assert (engine.builds, engine.requests) == ([], [])
    assert [failed(result) for result in again.values()] == [failed(result) for result in first.values()]


def test_more_trials_later_run_only_what_is_new(run):
    run(FakeEngine(), (A,), most=15)
    engine = FakeEngine()
    assert failed(run(engine, (A,), most=40)[A]) == (0, 40)
    assert [seed for seeds in engine.seeds for seed in seeds] == list(range(15, 40))


def test_other_seeds_are_other_trials(run):
    """What earlier seeds gave neither stops these nor enters their rate."""
    run(FakeEngine(trial=lambda cell, seed: "FAILED"), (A,), most=30)
    assert failed(run(FakeEngine(), (A,), most=20, first_seed=1000)[A]) == (0, 20)
    assert failed(run(FakeEngine(), (A,), most=20, first_seed=20)[A]) == (10, 20)


def test_repetitions_of_one_seed(run):
    engine = FakeEngine()
    assert failed(run(engine, (A,), most=25, mode=Mode.REPEAT, first_seed=7)[A]) == (0, 25)
    assert engine.seeds == [[7] * 10, [7] * 10, [7] * 5]
    assert [request["first_trial"] for request in engine.requests] == [0, 10, 20]
    assert failed(run(engine, (A,), most=5, mode=Mode.REPEAT, first_seed=8)[A]) == (0, 5)


@pytest.mark.parametrize(
    ("how", "lost", "kept"),
    [(LOST, {3, 4, 5}, 3), ("INFRA", {3, 10, 17}, 9)],
    ids=["the process died", "the process went on"],
)
def test_a_lost_repetition_is_run_again_by_the_next_command(run, how, lost, kept):
    """The fourth repetition is lost in each of its tries."""
    count = itertools.count()
    engine = FakeEngine(trial=lambda *_: how if next(count) in lost else "PASSED")
    broken = run(engine, (A,), mode=Mode.REPEAT)[A]
    assert (broken.phase, broken.rate.trials, broken.others) == (Phase.BROKEN, kept, {Outcome.INFRA: 1})
    engine = FakeEngine()
    done = run(engine, (A,), mode=Mode.REPEAT)[A]
    assert (done.phase, failed(done), done.others) == (Phase.DONE, (0, 20), {})
    assert engine.requests[0]["first_trial"] == 3
    assert sum(len(seeds) for seeds in engine.seeds) == 20 - kept


def test_news_tell_each_phase_and_the_time_left(run):
    run(FakeEngine(), (A,))
    phases = list(dict.fromkeys(result.phase.value for result in run.news))
    assert phases == ["waiting", "building", "ready", "running", "done"]
    left = [result.left for result in run.news if result.phase is Phase.RUNNING]
    assert left[-1] == 0
    assert all(seconds is not None and seconds >= 0 for seconds in left)


# Broken cells ----------------------------------------------------------------------------------------------


def test_a_cell_that_cannot_be_built_stops_no_other(run):
    def build(cell):
        if cell is A:
            raise BuildError("no wheel of triton 3.6.0")

    results = run(FakeEngine(build=build))
    assert results[A].phase is Phase.BROKEN
    assert results[A].note == "build failed: no wheel of triton 3.6.0"
    assert results[A].others == {Outcome.BUILD_FAILED: 1}
    assert failed(results[B]) == failed(results[C]) == (0, 20)


def test_a_cell_whose_processes_die_stops_no_other(run):
    results = run(FakeEngine(trial=lambda cell, seed: DIED if cell is B else "PASSED"))
    assert results[B].phase is Phase.BROKEN
    assert results[B].note.startswith("10 processes died in a row")
    assert results[B].others == {Outcome.CRASHED: 10}
    assert failed(results[A]) == failed(results[C]) == (0, 20)


def test_hopeless_cells_are_not_tried_for_ever(run):
    results = run(FakeEngine(trial=lambda cell, seed: "COMPILE_ERROR"), (A,), most=500)
    assert results[A].phase is Phase.BROKEN
    assert results[A].note == "no trial passes or fails with the target signature"
    assert results[A].others == {Outcome.COMPILE_ERROR: 10}


def test_infrastructure_enters_no_rate(run):
    count = iter(range(100))
    engine = FakeEngine(trial=lambda cell, seed: LOST if next(count) == 5 else "PASSED")
    result = run(engine, (A,))[A]
    assert (result.phase, failed(result), result.others) == (Phase.DONE, (0, 20), {})


@pytest.mark.parametrize("where", ["build", "trial"])
def test_a_fault_of_the_kit_in_one_cell_stops_no_other(run, tmp_path, where):
    def fault(cell, seed=0):
        if cell is A:
            raise ZeroDivisionError("a fault")
        return "PASSED"

    results = run(FakeEngine(**{where: fault}))
    assert failed(results[B]) == failed(results[C]) == (0, 20)
    report = tmp_path / "logs" / f"bug-{A.id}.txt"
    assert results[A].phase is Phase.BROKEN
    assert results[A].note == (
        f"a fault in the kit itself: ZeroDivisionError('a fault'); please report it with {report}"
    )
    assert 'raise ZeroDivisionError("a fault")' in report.read_text()


def test_an_engine_that_is_not_there_is_one_error(run):
    def build(cell):
        raise NotReadyError("no engine answers", next_step="start one")

    with pytest.raises(NotReadyError, match="no engine answers"):
        run(FakeEngine(build=build))


def test_an_engine_that_goes_away_leaves_the_table(run):
    def trial(cell, seed):
        if cell is C:
            raise NotReadyError("no engine answers any more")
        return "PASSED"

    results = run(FakeEngine(trial=trial))
    assert results[C].note == "no engine answers any more"
    assert failed(results[A]) == (0, 20)


def test_trials_that_land_in_another_series_end_the_cell(run):
    """Such as a GPU that the kit sees and the cell's torch does not: their seeds would be tried for ever."""
    on_gpu = cell(cuda="cu130")
    engine = FakeEngine(gpu_seen=lambda given: "")
    result = run(engine, (on_gpu,), gpus=[0])[on_gpu]
    assert (result.phase, result.note) == (Phase.BROKEN, f"its trials did not run on {H100}")
    assert len(engine.requests) == 1


# Who runs where --------------------------------------------------------------------------------------------


def test_two_gpus_are_used_at_a_time_and_none_by_two_cells(run):
    cells = [cell(triton, "cu130") for triton in ("3.4.0", "3.5.1", "3.6.0", "3.7.1")]
    both = threading.Barrier(2, timeout=20)
    busy, clashes, lock = set(), [], threading.Lock()
    engine = FakeEngine()

    def trial(cell, seed):
        gpu = next(process.job.gpu for process in set(engine.running) if process.cell is cell)
        with lock:
            clashes.extend([gpu] if gpu in busy else [])
            busy.add(gpu)
        both.wait()  # passes only while two cells run
        with lock:
            busy.remove(gpu)
        return "PASSED"

    engine.trial = trial
    results = run(engine, cells, most=6, block=3, gpus=[0, 1], jobs=2)
    assert {failed(result) for result in results.values()} == {(0, 6)}
    assert clashes == []
    assert {job.gpu for job in engine.jobs} == {0, 1}
    assert {result.gpu for result in results.values()} == {H100}


def test_cells_without_a_gpu_are_given_none(run):
    engine = FakeEngine()
    assert run(engine, (A,), gpus=[0])[A].gpu == ""
    assert {job.gpu for job in engine.jobs} == {None}


# Ctrl-C ----------------------------------------------------------------------------------------------------


def test_a_stop_ends_all_cells_soon_and_keeps_what_had_finished(run, tmp_path):
    def trial(cell, seed):
        if seed < 3:
            return "PASSED"
        run.runner.stop.set()
        return HANG

    began = time.monotonic()
    with pytest.raises(Interrupted):
        run(FakeEngine(trial=trial), (A, B, C), jobs=1)
    assert time.monotonic() - began < 10
    engine = FakeEngine()
    assert {failed(result) for result in run(engine).values()} == {(0, 20)}
    firsts = {request["cell"]: request["seeds"][0] for request in reversed(engine.requests)}
    assert sorted(firsts.values()) == [0, 0, 3]  # the one cell that had begun goes on


def test_ctrl_c_ends_trials_and_builds_that_run(run, tmp_path):
    def build(cell):
        if cell is not A:
            run_logged(["sleep", "100"], log=tmp_path / "build.log", timeout=200)

    def trial(cell, seed):
        while not (tmp_path / "build.log").exists():
            time.sleep(0.01)
        press_ctrl_c()
        return HANG

    engine = FakeEngine(build=build, trial=trial)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(engine)
    assert time.monotonic() - began < 10
    assert not engine.running
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        assert [build.cell for build in ledger.builds()] == [A.id]  # an interrupted build has not failed
