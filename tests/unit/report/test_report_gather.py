"""What a report says, against numbers worked out by hand."""

from __future__ import annotations

import json

import pytest
from report_ledgers import A100, CELLS, H200, SIGNATURE, TEST, comparisons, flake, write_cell

from repro.errors import UsageError
from repro.report.verdict import title
from repro.report.verdict import verdict as lines_of
from repro.stats import anytime
from repro.trial.records import Mode, Outcome


def verdict(report):
    return dict(lines_of(report))


def test_cells_that_fail_alike(home, told):
    flake(home)
    report = told()
    assert title(report) == f"{TEST} fails in 10.0 % of trials (4/40 in each of 3 cells) on {H200}"
    assert [(row.rate.failed, row.rate.trials) for row in report.rates] == [(4, 40)] * 3
    assert report.rates[0].rate == anytime(4, 40)
    assert report.rates[0].failing_seeds == [1, 5, 9, 14]
    assert report.pairing.differing == []
    assert [pair.counts.both for pair in report.pairing.pairs] == [4, 4, 4]
    agreed = report.anatomy.agreement
    assert (agreed.cells, agreed.seeds, agreed.somewhere, agreed.everywhere) == (3, 40, 4, 4)
    assert (agreed.compared, agreed.same_elements) == (4, 4)
    assert len(verdict(report)) == 5
    assert (
        "No difference between cells was found in 3 comparisons (40 common"
        in verdict(report)["In which cells"]
    )


def test_a_cell_that_fails_more(home, told):
    write_cell(home, "b0", CELLS[0], failing=range(0, 4), trials=60)
    write_cell(home, "b1", CELLS[1], failing=range(0, 24), trials=60)
    write_cell(home, "b2", CELLS[2], failing=range(0, 4), trials=60)
    report = told()
    differing = report.pairing.differing
    assert [(pair.a.cell, pair.b.cell) for pair in differing] == [(CELLS[0], CELLS[1]), (CELLS[1], CELLS[2])]
    counts = differing[0].counts
    assert (counts.both, counts.a_only, counts.b_only, counts.neither) == (4, 0, 20, 36)
    # Two of three pairs have p = 2 * 2^-20: Benjamini and Hochberg multiply it by 3/2.
    assert differing[0].judged.q_value == pytest.approx(1.5 * 2 * 2**-20)
    assert f"{CELLS[1]} fails more often than {CELLS[0]}" in verdict(report)["In which cells"]
    assert "6.7 % to 40.0 % of trials (180 trials, 3 cells)" in title(report)


def test_the_verdict_names_the_cell_that_fails_more_whichever_comes_first(home, told):
    write_cell(home, "b0", CELLS[0], failing=range(0, 30), trials=60)
    write_cell(home, "b1", CELLS[1], failing=(), trials=60)
    report = told()
    assert f"{CELLS[0]} fails more often than {CELLS[1]}" in verdict(report)["In which cells"]
    assert "50.0 % of trials (30/60 in 1 of 2 cells)" in title(report)


def test_a_cell_that_ran_once_more_is_told_from_the_others(home, told):
    write_cell(home, "b0", CELLS[0], failing=range(0, 4), trials=60)
    assert not any("once more" in note for note in told().notes)
    write_cell(home, "b1", f"{CELLS[0]}-REPRO_AGAIN=1", failing=range(0, 4), trials=60)
    assert any("end in REPRO_AGAIN=1 are the same cell once more" in note for note in told().notes)


def test_anatomy(home, told):
    flake(home)
    anatomy = told().anatomy
    (failure,) = anatomy.failures
    assert (failure.trials, failure.comparison, failure.size) == (12, 1, 48)
    assert (failure.mismatched.low, failure.mismatched.high) == (1, 1)
    assert (failure.ratio.low, failure.ratio.high) == (101.0, 114.0)
    worst = failure.worst[0]
    assert (worst.seed, worst.index, worst.actual) == (14, (0, 6, 2), 15.0)
    assert worst.allowed == pytest.approx(0.001 + 0.01)
    assert [(one.comparison, one.failed) for one in anatomy.neighbours] == [(0, 0)]
    assert [(one.number, one.size) for one in anatomy.dimensions] == [(0, 2), (1, 8), (2, 3)]
    assert anatomy.dimensions[0].counts == [3, 9]  # seeds 1, 5 and 9 are odd, in three cells each
    assert max(anatomy.passing_ratios) == 0.01
    assert len(anatomy.failing_ratios) == 12


def test_cells_that_fail_at_other_elements(home, told):
    flake(home, cells=CELLS[:1])
    other = comparisons(5, failed=True)
    other[1]["mismatched_at"] = "elsewhere"
    write_cell(home, "b9", CELLS[1], failing=(5,), comparisons=other)
    agreed = told().anatomy.agreement
    assert (agreed.somewhere, agreed.everywhere, agreed.compared, agreed.same_elements) == (4, 1, 1, 0)


def test_rates_of_other_modes_stay_apart(home, told):
    flake(home)
    write_cell(home, "r", CELLS[0], failing=range(20), trials=20, mode="repeat")
    report = told()
    assert [(row.series.mode, row.rate.failed) for row in report.other_rates] == [(Mode.REPEAT, 20)]
    assert all(row.series.mode is Mode.SEEDS for row in report.rates)
    assert "4/40" in title(report)


def test_seeds_of_two_gpu_models_are_not_paired(home, told):
    write_cell(home, "b0", CELLS[0], failing=range(4), trials=60)
    write_cell(home, "b1", CELLS[0], failing=range(40), trials=60, gpu=A100)
    report = told()
    (pair,) = report.pairing.pairs
    assert pair.counts is None
    assert pair.judged.comparison.test == "Fisher, exact"
    assert f"fails more often on {A100} than on {H200}" in verdict(report)["In which cells"]
    assert title(report).endswith("on 2 GPU models")


def test_many_cells_are_compared_with_one(home, told):
    for number in range(15):
        write_cell(
            home, f"b{number:02}", f"torch2.11.0-triton3.{number}.0-cu130-py312", failing=(1,), trials=12
        )
    pairing = told().pairing
    assert pairing.reference is not None
    assert len(pairing.pairs) == 14


def test_never_failed(home, told):
    flake(home, failing=())
    report = told()
    assert title(report) == f"{TEST} has not failed in 120 trials on {H200}"
    assert f"a rate above {anytime(0, 40).high * 100:.1f} %" in verdict(report)["How often"]
    assert "What fails" not in verdict(report)


def test_fails_always(home, told):
    flake(home, failing=range(40))
    assert "Every trial fails: this is no flake." in verdict(told())["How often"]


def test_nothing_but_crashes(home, told):
    write_cell(home, "b0", CELLS[0], failing=(1, 2), trials=3, outcome="CRASHED")
    folder = home / "blocks" / "b0" / "records.jsonl"
    folder.write_text(folder.read_text().replace("PASSED", "CRASHED"))
    report = told()
    assert "no trial passed or failed" in title(report)
    assert report.rates[0].others == {Outcome.CRASHED: 3}
    assert "3 CRASHED" in report.notes[0]


def test_a_failure_without_tensors(home, told):
    signature = {**SIGNATURE, "comparison": None, "key": "AssertionError in test_op: assert draw() < 9"}
    more = {"signature": signature, "comparisons": [], "message": "assert 9.5 < 9"}
    write_cell(home, "b0", CELLS[0], failing=(3,), **more)
    report = told()
    (failure,) = report.anatomy.failures
    assert (failure.comparison, failure.message) == (None, "assert 9.5 < 9")
    assert "`AssertionError in test_op: assert draw() < 9`" in verdict(report)["What fails"]


def test_numbers_that_are_texts(home, told):
    broken = comparisons(3, failed=True)
    broken[1] |= {"max_abs": "nan", "ratio": "inf", "nan": [1, 0]}
    broken[1]["worst"][0]["actual"] = "nan"
    write_cell(home, "b0", CELLS[0], failing=(3,), comparisons=broken)
    (failure,) = told().anatomy.failures
    assert (failure.special, failure.error, failure.ratio.high) == (1, None, float("inf"))


def test_the_test_with_the_most_failures_unless_named(home, told):
    flake(home)
    write_cell(home, "z", CELLS[0], failing=(), trials=90, test="test_other", revision="abc")
    assert told().test == TEST
    assert told().elsewhere == ["test_other at abc: 0 of 90 failed"]
    assert told(test="test_other").test == "test_other"
    assert told(test="test_backward").test == TEST
    assert told(revision="ab").test == "test_other"


def test_what_is_not_there(home, told):
    home.mkdir()
    with pytest.raises(UsageError, match="holds no trials"):
        told()
    flake(home)
    with pytest.raises(UsageError, match="no trials of test_nothing"):
        told(test="test_nothing")


def test_environments_and_digests(home, told):
    flake(home)
    (home / "builds.jsonl").write_text(
        json.dumps(
            {"cell": CELLS[0], "digest": "d1", "ok": True, "seconds": 1.0, "log_tail": "", "time": 1.0}
        )
    )
    report = told()
    assert {each.cell for each in report.environments} == set(CELLS)
    assert report.digests == {CELLS[0]: "d1"}
