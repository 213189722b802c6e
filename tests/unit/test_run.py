"""Orders of trials, over processes that die, hang, and never begin."""

import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_engine import DIED, HANG, LOST, FakeEngine, bench, cell, subject

from repro import __version__
from repro.engines.base import Exit
from repro.engines.process import Cancelled, run_logged
from repro.errors import BuildError
from repro.run import Interrupted, Order, Target, build_threads, install_plugin
from repro.store import Ledger
from repro.trial.records import Mode


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture
def make(tmp_path, ledger):
    """A runner over an engine that does as it is told."""
    return lambda runner=None, **told: bench(tmp_path, ledger, FakeEngine(**told), **(runner or {}))


def dies_at(*seeds, how=DIED):
    return lambda cell, seed: how if seed in seeds else "PASSED"


# Processes that end before their order does ----------------------------------------------------------------


def test_one_process_for_all_where_nothing_goes_wrong(make):
    kit = make(trial=lambda cell, seed: "FAILED" if seed == 2 else "PASSED")
    ran = kit.run(Order(seeds=range(4)))
    assert (ran.ended, ran.gave_up) == (4, "")
    assert kit.engine.seeds == [[0, 1, 2, 3]]
    assert kit.outcomes == {0: "PASSED", 1: "PASSED", 2: "FAILED", 3: "PASSED"}


def test_a_death_costs_its_own_trial_only(make):
    kit = make(trial=dies_at(2, 3))
    ran = kit.run(Order(seeds=range(6)))
    assert (ran.ended, ran.gave_up) == (6, "")
    assert kit.engine.seeds == [[0, 1, 2, 3, 4, 5], [3, 4, 5], [4, 5]]
    assert [request["first_trial"] for request in kit.engine.requests] == [0, 3, 4]
    assert [seed for seed, outcome in kit.outcomes.items() if outcome == "CRASHED"] == [2, 3]
    assert kit.messages[2] == "the process was ended by signal 11: last words"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (Exit(code=3), "the process ended with status 3"),
        (Exit(code=137, signal=9, out_of_memory=True), "the process ran out of memory"),
        (Exit(code=137, signal=9, detail="a\nb"), "the process was ended by signal 9: a\nb"),
    ],
)
def test_what_a_process_died_of(make, how, message):
    kit = make(trial=dies_at(1, how=how))
    kit.run(Order(seeds=range(2)))
    assert (kit.outcomes[1], kit.messages[1]) == ("CRASHED", message)


def test_a_hang_is_ended_from_outside_at_its_limit(make):
    kit = make(trial=dies_at(1, how=HANG))
    ran = kit.run(Order(seeds=range(3)))
    assert ran.ended == 3
    assert kit.outcomes == {0: "PASSED", 1: "TIMED_OUT", 2: "PASSED"}
    assert kit.messages[1] == "no sign of life for 60 s; the process was killed"
    assert 60 < kit.engine.clock.now <= 100


def test_a_process_that_hangs_before_its_first_trial_has_longer(make):
    kit = make(begin=lambda cell: HANG)
    ran = kit.run(Order(seeds=range(3)))
    assert ran.gave_up == "no sign of life for 300 s; the process was killed"
    assert kit.outcomes == {0: "TIMED_OUT"}
    assert 300 < kit.engine.clock.now <= 340


def test_a_death_before_the_first_trial_is_not_tried_again(make):
    kit = make(begin=lambda cell: Exit(code=1, detail="ImportError: libcudart"))
    ran = kit.run(Order(seeds=range(3)))
    assert ran.gave_up == "the process ended with status 1: ImportError: libcudart"
    assert len(kit.engine.requests) == 1
    assert kit.outcomes == {0: "CRASHED"}


def test_a_death_between_two_trials_blames_neither(make):
    """Such as in the second run of a failing seed, for the sake of its inputs."""

    def trial(cell, seed):
        return {"outcome": "FAILED", "then": DIED} if seed == 1 else "PASSED"

    kit = make(trial=trial)
    ran = kit.run(Order(seeds=range(4)))
    assert (ran.ended, ran.gave_up) == (4, "")
    assert kit.engine.seeds == [[0, 1, 2, 3], [2, 3]]
    assert kit.outcomes == {0: "PASSED", 1: "FAILED", 2: "PASSED", 3: "PASSED"}


def test_a_death_after_the_last_trial_changes_nothing(make):
    kit = make(trial=lambda cell, seed: {"outcome": "PASSED", "then": DIED if seed == 2 else None})
    assert kit.run(Order(seeds=range(3))).ended == 3
    assert len(kit.engine.requests) == 1
    assert set(kit.outcomes.values()) == {"PASSED"}


def test_a_missing_test_is_told_with_the_nearest(make):
    missing = {
        "event": "missing", "reason": "absent", "outcome": "TEST_MISSING",
        "message": "the file has no test 'test_it'", "nearest": ["test_is", "test_at"],
    }  # fmt: skip
    kit = make(begin=lambda cell: missing)
    ran = kit.run(Order(seeds=range(3)))
    assert ran.gave_up == "the file has no test 'test_it'; the nearest are test_is, test_at"
    assert kit.outcomes == {0: "TEST_MISSING"}


def test_a_line_that_was_cut_off_is_no_harm(make):
    kit = make(trial=dies_at(1))
    whole = kit.engine.start

    def cut(prepared, job):
        process = whole(prepared, job)
        work = process._work

        def half_a_line():
            ended = work()
            with (job.records / "records.jsonl").open("a") as file:
                file.write('{"event": "e')
            return ended

        process._work = half_a_line
        return process

    kit.engine.start = cut
    assert kit.run(Order(seeds=range(3))).ended == 3
    assert kit.outcomes == {0: "PASSED", 1: "CRASHED", 2: "PASSED"}


def test_a_trial_of_another_seed_is_no_trial_of_the_order(make):
    """A test that claims ends beyond its own would have the others left out."""
    bench = make(trial=lambda cell, seed: {"outcome": "PASSED", "seed": 99} if seed == 2 else "PASSED")
    ran = bench.run(Order(seeds=[0, 1, 2]))
    assert ran.ended == 2
    assert "without a trial" in ran.gave_up
    assert bench.outcomes == {0: "PASSED", 1: "PASSED"}
    assert set(bench.ledger.garbled_lines().values()) == {1}


def test_ten_deaths_in_a_row_are_enough(make):
    kit = make(trial=lambda cell, seed: DIED if seed >= 3 else "PASSED")
    ran = kit.run(Order(seeds=range(50)))
    assert ran.gave_up == (
        "10 processes died in a row, each in its first trial; the last:"
        " the process was ended by signal 11: last words"
    )
    assert len(kit.engine.requests) == 11  # the first process died in its fourth trial
    assert ran.ended == len(kit.outcomes) == 14


def test_deaths_with_passes_between_them_are_no_row(make):
    kit = make(trial=lambda cell, seed: DIED if seed % 2 else "PASSED")
    ran = kit.run(Order(seeds=range(30)))
    assert (ran.ended, ran.gave_up) == (30, "")


# Trouble beside the test -----------------------------------------------------------------------------------


def failing(times, how):
    """What comes of the first so many trials of seed 2, before it passes."""
    count = itertools.count()
    return lambda cell, seed: how if seed == 2 and next(count) < times else "PASSED"


@pytest.mark.parametrize("how", [LOST, "INFRA"])
def test_a_trial_that_could_not_run_is_tried_again(make, how):
    kit = make(trial=failing(2, how))
    ran = kit.run(Order(seeds=range(4)))
    assert (ran.ended, ran.gave_up) == (4, "")
    assert kit.engine.seeds[1:] == [[2, 3], [2, 3]]
    assert set(kit.outcomes.values()) == {"PASSED"}
    assert len(kit.said) == 2


def test_after_two_further_tries_the_cell_is_given_up(make):
    kit = make(trial=failing(9, LOST))
    ran = kit.run(Order(seeds=range(4)))
    assert (ran.ended, ran.gave_up) == (2, "the engine went away; tried 3 times")
    assert kit.outcomes == {0: "PASSED", 1: "PASSED", 2: "INFRA"}
    assert kit.said == [f"{cell().id}: the engine went away; trying again"] * 2


def test_a_process_that_could_not_begin_is_tried_again(make):
    begins = iter([LOST, LOST, None])
    kit = make(begin=lambda cell: next(begins))
    assert kit.run(Order(seeds=range(2))).ended == 2
    assert kit.outcomes == {0: "PASSED", 1: "PASSED"}


def test_tries_are_counted_anew_once_trials_run_again(make):
    tries = {2: 2, 5: 2, 8: 2}

    def trial(cell, seed):
        tries[seed] = tries.get(seed, 0) - 1
        return LOST if tries[seed] >= 0 else "PASSED"

    kit = make(trial=trial)
    assert kit.run(Order(seeds=range(10))).gave_up == ""
    assert set(kit.outcomes.values()) == {"PASSED"}


# Modes -----------------------------------------------------------------------------------------------------


def test_fresh_is_a_process_a_trial_and_deaths_are_no_reason_to_stop(make):
    kit = make(trial=lambda cell, seed: DIED)
    ran = kit.run(Order(seeds=range(7), mode=Mode.FRESH))
    assert (ran.ended, ran.gave_up) == (7, "")
    assert kit.engine.seeds == [[0], [1], [2], [3], [4], [5], [6]]
    assert [request["first_trial"] for request in kit.engine.requests] == list(range(7))


def test_repetitions_go_on_counting_after_a_death(make):
    count = itertools.count()
    kit = make(trial=lambda cell, seed: DIED if next(count) == 2 else "PASSED")
    kit.run(Order(seeds=[9] * 5, mode=Mode.REPEAT, first_trial=4))
    assert kit.engine.seeds == [[9] * 5, [9] * 2]
    told = {trial.repetition: trial.outcome.value for trial in kit.ledger.trials(mode=Mode.REPEAT)}
    assert told == {4: "PASSED", 5: "PASSED", 6: "CRASHED", 7: "PASSED", 8: "PASSED"}


# Stopping --------------------------------------------------------------------------------------------------


def test_a_stop_ends_the_process_and_keeps_what_had_finished(make):
    stop = threading.Event()

    def trial(cell, seed):
        if seed < 2:
            return "PASSED"
        stop.set()
        return HANG

    kit = make(trial=trial, runner={"stop": stop})
    with pytest.raises(Interrupted):
        kit.run(Order(seeds=range(5)))
    assert kit.outcomes == {0: "PASSED", 1: "PASSED"}
    assert not kit.engine.running


def test_nothing_starts_after_a_stop(make):
    kit = make()
    kit.runner.stop.set()
    with pytest.raises(Interrupted):
        kit.run(Order(seeds=range(5)))
    assert kit.engine.requests == []


def test_a_stop_cuts_the_pause_before_another_try_short(make):
    kit = make(trial=failing(9, LOST))
    kit.runner.pause = 60
    kit.runner.say = lambda line: kit.runner.stop.set()
    with pytest.raises(Interrupted):
        kit.run(Order(seeds=range(4)))


# What a process is given -----------------------------------------------------------------------------------


def test_the_request(make, tmp_path):
    kit = make(runner={"gpu_model": "NVIDIA H100"})
    order = Order(seeds=[5, 6], gpu=1, first_trial=10, keep_inputs=3, env=(("FEWER", "1"),))
    kit.run(order)
    request, job = kit.engine.requests[0], kit.engine.jobs[0]
    block = job.records.name
    assert request == {
        "schema": 1,
        "kit": __version__,
        "block": block,
        "engine": "fake",
        "digest": "d" * 64,
        "cell": "torch2.13.0-triton3.7.1-cpu-py311",
        "subject": "content-123456789abc",
        "test": "test_it",
        "test_file": "tests/test_op.py",
        "mode": "seeds",
        "seeds": [5, 6],
        "replay": {},
        "inputs": None,
        "first_trial": 10,
        "gpu_model": "NVIDIA H100",
        "keep_inputs": 3,
        "signature": {"exception": "ValueError"},
        "root": str(tmp_path),
        "records": str(tmp_path / "blocks" / block),
        "python_path": [f"{tmp_path}/src"],
    }
    assert (job.gpu, job.env) == (1, {"FEWER": "1"})
    assert job.cache == tmp_path / "cache" / ("d" * 12) / "content-123456789abc"
    assert (job.kit / "repro_trial" / "__main__.py").exists()


def test_no_gpu_no_model(make):
    kit = make(runner={"gpu_model": "NVIDIA H100"})
    kit.run(Order(seeds=[1]))
    assert kit.engine.requests[0]["gpu_model"] == ""


@pytest.mark.parametrize("name", ["trials.py", "probe/session.py"])
def test_an_installed_plugin_that_was_touched_is_mended(tmp_path, name):
    home = install_plugin(tmp_path)
    plugin = home / "repro_trial" / name
    whole = plugin.read_bytes()
    plugin.write_bytes(whole[:100])
    assert install_plugin(tmp_path) == home
    assert plugin.read_bytes() == whole


# Builds ----------------------------------------------------------------------------------------------------


def test_builds_are_recorded_with_their_end(make, tmp_path):
    def build(cell):
        if cell.triton == "3.6.0":
            raise BuildError("no such wheel")

    kit = make(build=build)
    kit.runner.prepare(kit.target())
    with pytest.raises(BuildError):
        kit.runner.prepare(Target(cell=cell("3.6.0"), subject=subject(tmp_path)))
    told = {build.cell: (build.ok, build.log_tail) for build in kit.ledger.builds()}
    assert told == {cell().id: (True, ""), cell("3.6.0").id: (False, "no such wheel")}


def test_build_threads_end_builds_when_their_body_is_left(tmp_path):
    def build(number):
        return run_logged(["sleep", "60"], log=tmp_path / f"{number}.log", timeout=90)

    ends = []
    with pytest.raises(KeyboardInterrupt), build_threads(2) as pool:  # noqa: PT012
        ends += [pool.submit(build, number) for number in range(5)]
        while not (tmp_path / "1.log").exists():
            pass
        raise KeyboardInterrupt
    assert [type(end.exception()) for end in ends[:2]] == [Cancelled] * 2
    assert all(end.cancelled() for end in ends[2:])
    assert not (tmp_path / "2.log").exists()


def test_build_threads_wait_for_builds_otherwise():
    with build_threads(2) as pool:
        end = pool.submit(lambda: "built")
    assert isinstance(pool, ThreadPoolExecutor)
    assert end.result() == "built"


# After a kill ----------------------------------------------------------------------------------------------


def test_recover_takes_in_what_a_killed_run_had_recorded(make, tmp_path):
    folder = tmp_path / "blocks" / "20261101T000000-00000000"
    folder.mkdir(parents=True)
    asked = {"cell": cell().id, "subject": "r", "test": "t", "mode": "seeds", "seeds": [0, 1, 2]}
    (folder / "request.json").write_text(json.dumps(asked))
    events = [
        {"event": "cell", "schema": 1, "time": 1.0},
        {"event": "start", "trial": 0, "seed": 0, "time": 1.0},
        {"event": "end", "trial": 0, "seed": 0, "outcome": "FAILED", "time": 1.0},
        {"event": "start", "trial": 1, "seed": 1, "time": 1.0},
    ]
    (folder / "records.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    kit = make(left=["container repro-x"])
    kit.runner.recover()
    assert kit.outcomes == {0: "FAILED"}
    assert kit.said == ["removed container repro-x, left behind by a run that was killed"]
