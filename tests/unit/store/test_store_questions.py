"""What the ledger says of block files."""

from __future__ import annotations

import pytest
from block_files import CELL, H100, REPEATS, SERIES, append, assert_tallies_are_true, end, write_block

from repro.store import Series
from repro.trial.records import Mode, Outcome


def test_counts_each_outcome(home, ledger):
    outcomes = ["PASSED", "FAILED", "PASSED", "CRASHED", "SKIPPED"]
    folder = write_block(home, "b1", [CELL, *(end(i, outcome) for i, outcome in enumerate(outcomes))])
    assert ledger.ingest(folder).trials == 5
    tally = ledger.tally(SERIES)
    assert (tally.failed, tally.passed, tally.n) == (1, 2, 3)
    assert tally.others == {Outcome.CRASHED: 1, Outcome.SKIPPED: 1}
    assert ledger.done_seeds(SERIES) == {0, 1, 2, 3, 4}
    assert ledger.sequence(SERIES) == [False, True, False]
    assert ledger.failing_seeds(SERIES) == [1]


def test_ingest_goes_on_where_it_stopped(home, ledger):
    folder = write_block(home, "b1", [CELL, end(0, "PASSED")])
    assert ledger.ingest(folder).trials == 1
    assert ledger.ingest(folder).trials == 0
    append(folder, {"event": "start", "trial": 1, "seed": 1, "time": 7.0})
    running = ledger.ingest(folder).running
    assert (running.seed, running.since) == (1, 7.0)
    assert ledger.ingest(folder).running == running
    append(folder, end(1, "FAILED"), {"event": "block_end"})
    looked = ledger.ingest(folder)
    assert (looked.trials, looked.running, looked.ended) == (1, None, True)
    assert [trial.line for trial in ledger.trials()] == [2, 4]


def test_a_block_longer_than_a_batch(home, ledger):
    folder = write_block(home, "b1", [CELL, *(end(i, "PASSED") for i in range(4321))], seeds=range(4321))
    assert ledger.ingest(folder).trials == 4321
    assert ledger.tally(SERIES).n == 4321


def test_a_seed_counts_once_and_a_disagreement_is_kept(home, ledger):
    ledger.ingest(write_block(home, "b1", [CELL, end(0, "PASSED", at=10.0), end(1, "FAILED", at=11.0)]))
    ledger.ingest(write_block(home, "b2", [CELL, end(0, "FAILED", at=20.0), end(1, "FAILED", at=21.0)]))
    assert ledger.tally(SERIES).n == 2
    (other,) = ledger.disagreements(SERIES)
    assert (other.seed, other.outcome, other.block, other.counted) == (0, Outcome.FAILED, "b2", False)
    assert len(list(ledger.trials())) == 2
    assert len(list(ledger.trials(repeats=True))) == 4


def test_repetitions_count_each(home, ledger):
    events = [CELL, *(end(i, "FAILED" if i % 2 else "PASSED", seed=7) for i in range(6))]
    ledger.ingest(write_block(home, "b1", events, seeds=[7] * 6, mode="repeat"))
    assert ledger.tally(REPEATS).failed == 3
    assert ledger.tally(REPEATS, range(7, 8)).n == 6
    assert ledger.tally(REPEATS, range(8, 9)).n == 0
    assert ledger.done_repetitions(REPEATS, 7) == set(range(6))
    assert ledger.tally(SERIES).n == 0


@pytest.mark.parametrize("late", ["INFRA", "BUILD_FAILED"])
@pytest.mark.parametrize("swapped", [False, True])
def test_an_outcome_that_says_nothing_is_never_final(home, ledger, late, swapped):
    ledger.ingest(write_block(home, "b1", [CELL, end(0, late, at=10.0)]))
    assert ledger.done_seeds(SERIES) == set()
    times = (5.0, 10.0) if swapped else (20.0, 30.0)
    ledger.ingest(write_block(home, "b2", [CELL, end(0, "FAILED", at=times[0]), end(0, late, at=times[1])]))
    assert dict(ledger.tally(SERIES).counts) == {Outcome.FAILED: 1}
    assert ledger.disagreements(SERIES) == []
    assert_tallies_are_true(ledger)


def test_a_missing_test_shows_in_the_tally(home, ledger):
    missing = {"event": "missing", "reason": "absent", "message": "absent: test_op", "nearest": ["test_opp"]}
    looked = ledger.ingest(write_block(home, "b1", [CELL, missing], seeds=[5, 6]))
    assert looked.ended
    (trial,) = ledger.trials()
    assert (trial.seed, trial.outcome, trial.message) == (5, Outcome.TEST_MISSING, "absent: test_op")


def test_a_death_after_the_last_trial_adds_none(home, ledger):
    died = {"event": "missing", "outcome": "CRASHED", "reason": "signal 11"}
    asked = {"seeds": [7, 7], "mode": "repeat", "first_trial": 3}
    ledger.ingest(
        write_block(home, "b1", [CELL, end(3, "PASSED", seed=7), end(4, "PASSED", seed=7), died], **asked)
    )
    assert dict(ledger.tally(REPEATS).counts) == {Outcome.PASSED: 2}


def test_the_gpu_is_the_one_that_the_process_saw(home, ledger):
    unseen = {**CELL, "gpu": None, "imported": []}
    cpu = {**CELL, "gpu": None}
    ledger.ingest(write_block(home, "b1", [end(0, "INFRA")], gpu_model=H100))
    ledger.ingest(write_block(home, "b2", [unseen, end(1, "PASSED")], gpu_model=H100))
    ledger.ingest(write_block(home, "b3", [cpu, end(2, "PASSED")], gpu_model=H100))
    assert [(t.series.gpu, t.n) for t in ledger.tallies()] == [("", 1), (H100, 1)]


def test_evidence_of_a_trial(home, ledger):
    comparison = {
        "shape": [2, 3],
        "max_abs": 1e-3,
        "worst": [{"index": [0, 1]}],
        "max_abs_at": {"index": [0]},
    }
    signature = {"exception": "AssertionError", "key": "AssertionError in test_op: comparison 1"}
    events = [
        CELL,
        end(0, "PASSED", comparisons=[comparison]),
        end(1, "FAILED", comparisons=[comparison], signature=signature, message="bad \ud800"),
        {
            "event": "inputs",
            "seed": 1,
            "trial": 1,
            "path": "inputs/1.pt",
            "sha256": "f0",
            "failed_again": True,
        },
        {"event": "inputs", "seed": 2, "trial": 2, "reason": "too large"},
    ]
    looked = ledger.ingest(write_block(home, "b1", events))
    assert looked.garbled == 0
    passed, failed = ledger.trials()
    assert passed.comparisons == [{"shape": [2, 3], "max_abs": 1e-3}]
    assert failed.comparisons == [comparison]
    assert (failed.signature_key, failed.signature) == (signature["key"], signature)
    assert failed.message == "bad �"
    kept, not_kept = ledger.kept_inputs(SERIES)
    assert (kept.seed, kept.path, kept.sha256, kept.failed_again) == (1, "inputs/1.pt", "f0", True)
    assert (not_kept.seed, not_kept.path, not_kept.failed_again, not_kept.same_elements) == (
        2,
        "",
        None,
        None,
    )
    (environment,) = ledger.environments("torch2.9")
    assert environment.facts["torch"] == "2.9.0"


def test_the_same_environment_is_kept_once(home, ledger):
    ledger.ingest(write_block(home, "b1", [{**CELL, "block": "b1"}, end(0, "PASSED")]))
    ledger.ingest(write_block(home, "b2", [{**CELL, "block": "b2", "time": 9.0}, end(1, "PASSED")]))
    assert len(ledger.environments()) == 1


def test_filters(home, ledger):
    ledger.ingest(write_block(home, "b1", [CELL, end(0, "PASSED"), end(1, "FAILED")]))
    ledger.ingest(write_block(home, "b2", [CELL, end(0, "PASSED")], cell="torch2.4"))
    assert [t.series.cell for t in ledger.tallies()] == ["torch2.4", "torch2.9"]
    assert [t.series.cell for t in ledger.tallies(cell="torch2.4", mode=Mode.SEEDS)] == ["torch2.4"]
    assert ledger.tallies(mode=Mode.FRESH) == []
    assert [t.seed for t in ledger.trials(cell="torch2.9", outcomes=[Outcome.FAILED])] == [1]
    assert [t.block for t in ledger.trials(seed=0)] == ["b1", "b2"]


def test_paired_counts_are_over_common_seeds(home, ledger):
    a = ["PASSED", "FAILED", "FAILED", "PASSED", "CRASHED", "FAILED"]
    b = ["PASSED", "FAILED", "PASSED", "FAILED", "FAILED"]
    ledger.ingest(write_block(home, "b1", [CELL, *(end(i, o) for i, o in enumerate(a))]))
    ledger.ingest(write_block(home, "b2", [CELL, *(end(i, o) for i, o in enumerate(b))], cell="other"))
    counts = ledger.paired(
        SERIES, Series(cell="other", revision="abc", test="test_op", mode=Mode.SEEDS, gpu=H100)
    )
    assert (counts.both, counts.a_only, counts.b_only, counts.neither, counts.n) == (1, 1, 1, 1, 4)


def test_times(home, ledger):
    ends = [end(i, "PASSED", duration=seconds) for i, seconds in enumerate([1.0, 9.0, 2.0])]
    ledger.ingest(write_block(home, "b1", [CELL, *ends, end(3, "CRASHED", duration=None)]))
    assert ledger.seconds_per_trial() == {"torch2.9": 2.0}
    ledger.record_build("torch2.9", "d1", ok=True, seconds=20.0)
    ledger.record_build("torch2.9", "d2", ok=False, seconds=1.0, log_tail="no wheel")
    assert ledger.build_seconds() == {"torch2.9": 20.0}
    assert ledger.builds("torch2.9")[1].log_tail == "no wheel"
