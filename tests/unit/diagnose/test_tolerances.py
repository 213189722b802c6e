"""The failure rate by tolerance, and which bugs a looser one would miss."""

from dataclasses import replace

from evidences import FAILING, comparison, evidence, recorded, shot

from repro.diagnose.tolerances import curve, looser


def failing(actual, expected, seed=3):
    one = {
        **comparison(),
        "atol": 0.1,
        "rtol": 0.01,
        "worst": [{"index": [0], "actual": actual, "expected": expected}],
    }
    return replace(recorded(seed), comparisons=[one])


def at(found, atol, rtol):
    return next(each.failed for each in found if (each.atol, each.rtol) == (atol, rtol))


def test_each_tolerance_by_itself_and_both():
    found = curve(evidence(failed=2, recorded=[failing(10.35, 10.0), failing(0.35, 0.0)]))
    assert at(found, 1.0, 1.0) == 2
    assert at(found, 4.0, 1.0) == 0
    assert at(found, 1.0, 4.0) == 1  # a relative tolerance allows nothing at 0
    assert at(found, 2.0, 2.0) == 1
    assert {each.trials for each in found} == {100}


def test_values_that_are_no_numbers_fail_with_any_tolerance():
    found = curve(evidence(failed=1, recorded=[failing("nan", 1.0)]))
    assert at(found, 100.0, 100.0) == 1


def test_what_a_looser_tolerance_would_miss():
    watched = [replace(shot(3), mutants=[{"index": 0, "mutants": {"small": 3.0, "large": 500.0}}])]
    made = evidence(recorded=[failing(0.35, 0.0, seed) for seed in FAILING], watched=watched)
    missed = {each.atol: each.missed for each in curve(made) if each.atol == each.rtol}
    assert missed[2.0] == []
    assert missed[4.0] == ["small"]
    assert "4 times the tolerances would do, and would miss: small" in list(looser(made))


def test_without_recorded_failures_there_is_no_curve():
    assert curve(evidence(recorded=[])) == []
