"""Derivatives from difference quotients: how often the stated error holds, and jumps told from bends."""

import math
import random

import pytest

from repro.trial.probe.slopes import Quotient, judge, slopes, step_sizes

STEPS = step_sizes(0.5, 2.0**-23)


def quotients(function, x, rounding=0.0, chance=None, told=0.0):
    """Quotients of a function whose values are rounded."""
    draw = (lambda: chance.uniform(-rounding, rounding)) if rounding else (lambda: 0.0)
    middle = function(x) + draw()
    return [
        Quotient(
            h, (middle - function(x - h) - draw()) / h, (function(x + h) + draw() - middle) / h, told / h
        )
        for h in STEPS
    ]


def test_step_sizes_are_powers_of_two_around_the_root_of_epsilon():
    assert [math.frexp(h)[0] for h in STEPS] == [0.5] * len(STEPS)
    assert max(STEPS) > math.sqrt(2.0**-23) * 0.5 > min(STEPS)
    assert step_sizes(0.0, 2.0**-52) == step_sizes(1.0, 2.0**-52)
    assert min(step_sizes(1.0, 2.0**-10)) > 2.0**-10


@pytest.mark.parametrize("function", [math.sin, math.exp, lambda x: x**3, lambda x: 1 / (x + 0.1)])
def test_smooth_functions(function):
    found = slopes(quotients(function, 0.3))
    exact = (function(0.3 + 1e-6) - function(0.3 - 1e-6)) / 2e-6
    assert found.left == pytest.approx(exact, rel=1e-5)
    assert found.right == pytest.approx(exact, rel=1e-5)
    assert not judge(found, exact, exact * 1.01, 1e-3 * abs(exact), False)["jump"]


@pytest.mark.parametrize("told", [True, False])
def test_the_stated_error_holds(told):
    chance, held, jumps, rounding = random.Random(7), 0, 0, 2.0**-24
    for _ in range(1000):
        a, b, x = (chance.uniform(0.5, 2) for _ in range(3))
        found = slopes(
            quotients(lambda x, a=a, b=b: a * math.sin(b * x), x, rounding, chance, rounding * told)
        )
        exact = a * b * math.cos(b * x)
        held += abs(found.left - exact) < 3 * found.noise and abs(found.right - exact) < 3 * found.noise
        jumps += bool(judge(found, exact, exact, 1e-3, True)["jump"])
    assert held > (990 if told else 950)
    assert jumps <= (0 if told else 10)


@pytest.mark.parametrize("away", [0.0, 1e-7, -3e-7])
def test_a_jump_is_seen_through_noise_and_from_a_few_roundings_away(away):
    chance, seen = random.Random(3), 0
    for _ in range(200):
        found = slopes(quotients(lambda x: abs(x - 0.25), 0.25 + away, 2.0**-24, chance, 2.0**-24))
        told = judge(found, 1.0, -1.0, 1e-2, False)
        seen += (told["jump"], told["actual_fits"], told["expected_fits"]) == (True, "right", "left")
    assert seen == 200


def test_a_wrong_value_fits_neither_side():
    found = slopes(quotients(math.sin, 0.3))
    told = judge(found, math.cos(0.3) * 1.1, math.cos(0.3), 1e-3, False)
    assert (told["jump"], told["actual_fits"], told["expected_fits"]) == (False, "none", "both")
    assert told["central"] == pytest.approx(math.cos(0.3))


def test_noise_that_hides_the_answer_is_no_answer():
    chance = random.Random(5)
    found = slopes(quotients(math.sin, 0.3, 1e-2, chance, 1e-2))
    told = judge(found, 1.0, 0.9, 1e-3, False)
    assert (told["jump"], told["actual_fits"], told["expected_fits"]) == (None, None, None)


def test_too_few_quotients():
    known = quotients(math.sin, 0.3)
    cut = [*known[:2], *(Quotient(one.h, None, one.right) for one in known[2:])]
    assert slopes(cut) is None


def test_a_value_that_is_no_number_fits_nothing():
    told = judge(slopes(quotients(math.sin, 0.3)), math.nan, math.cos(0.3), 1e-3, False)
    assert (told["actual_fits"], told["expected_fits"]) == ("none", "both")
