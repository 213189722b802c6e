"""In what manner compared values differ."""

import math

import pytest

from repro.minimize.blocks import outcomes
from repro.trial.minimizing.manners import manners, same_manner

KEY = "AssertionError in test_it: comparison 0"


def failed(*pairs, **fields):
    worst = [{"index": [0], "actual": actual, "expected": expected} for actual, expected in pairs]
    return {
        "event": "end",
        "outcome": "FAILED",
        "signature": {"key": KEY},
        "comparisons": [{"index": 0, "passed": False, "worst": worst, **fields}],
    }


@pytest.mark.parametrize(
    ("pair", "manner"),
    [
        ((1.0, 2.0), "two numbers"),
        ((1, "(1+2j)"), "two numbers"),
        ((math.nan, 2.0), "actual is no number"),
        (("nan", 2.0), "actual is no number"),
        ((0.0, "-inf"), "expected is no number"),
        ((math.inf, "(nan+0j)"), "neither is a number"),
    ],
)
def test_of_one_pair(pair, manner):
    assert manners(failed(pair)) == {manner}


def test_elements_that_pass_do_not_count():
    assert manners(failed(("nan", 2.0), passed=True)) == set()
    assert manners({"outcome": "PASSED"}) == set()


def test_a_failure_in_a_manner_that_is_not_known_is_another():
    rounding, overflow = failed((1.0, 2.0)), failed(("inf", 2.0), (1.0, 2.0))
    assert same_manner(rounding, manners(overflow))
    assert not same_manner(overflow, manners(rounding))
    assert not same_manner(failed(), manners(rounding)), "shapes differ, and no element"
    assert outcomes([rounding, overflow], KEY) == (2, 0, {})
    assert outcomes([rounding, overflow], KEY, manners(rounding)) == (1, 0, {"FAILED": 1})
