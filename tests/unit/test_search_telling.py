"""Which trials tell a step from other shapes, and what the other shapes say of a candidate's rate."""

from __future__ import annotations

import pytest

from repro.search import DEFAULT_MODEL, ChangePointSearch, Verdict
from repro.search.accounts import Account
from repro.search.policy import Question
from repro.search.posterior import posterior
from repro.search.shape import Shape, weigh
from repro.search.telling import telling

STEP = Account(31, 32, 0.0, True, 0.0, 0.3)
SLOPE = Account(28, 36, 0.0, False, 0.0, 0.3)
PLATEAU = Account(20, 44, 0.0, False, 0.0, 0.3, 0.15)


def ask(rival: Account, skipped: frozenset[int] = frozenset(), build_cost: float = 0.0) -> int:
    shape = Shape(0.5, 0.5, 20, 44, ((STEP, 0.5), (rival, 0.5)))
    choice = telling(shape, Question(64, [0, 31, 32, 63], skipped, build_cost, 100))
    assert choice is not None
    assert choice.worth > 0.0
    assert choice.trials == 3
    return choice.index


def sloping(step: bool) -> Shape:
    """What 160 trials of each candidate, which failed exactly as often as expected, say of 15 | 16."""
    rates = [0.3 * (i >= 16) if step else 0.3 * min(1.0, max(0.0, (i - 11) / 8)) for i in range(32)]
    counts = {i: (round(160 * rate), 160 - round(160 * rate)) for i, rate in enumerate(rates)}
    slots = posterior(counts, 32, DEFAULT_MODEL).slots
    return weigh(slots, counts, DEFAULT_MODEL, next(slot for slot in slots if slot.high == 16), 0.95)


def test_a_step_changes_at_once_a_slope_evenly_and_two_steps_by_way_of_a_plateau():
    assert [STEP.rate(i) for i in (0, 31, 32, 63)] == [0.0, 0.0, 0.3, 0.3]
    assert [SLOPE.rate(i) for i in (28, 30, 32, 36)] == pytest.approx([0.0, 0.075, 0.15, 0.3])
    assert [PLATEAU.rate(i) for i in (20, 21, 43, 44)] == [0.0, 0.15, 0.15, 0.3]


def test_a_slope_is_told_where_a_step_would_not_fail_at_all():
    assert ask(SLOPE) == 31


def test_untestable_candidates_tell_nothing():
    assert ask(SLOPE, frozenset({31})) in (30, 32)


def test_a_new_candidate_must_be_worth_its_build():
    assert ask(PLATEAU, frozenset({31})) in range(21, 31)
    assert ask(PLATEAU, frozenset({31}), build_cost=100.0) == 32


def test_a_step_is_named_and_a_slope_ends_with_its_range():
    step, slope = sloping(step=True), sloping(step=False)
    assert step.named >= 0.95
    assert not step.several
    assert slope.several
    assert slope.low < 15
    assert slope.high > 16


def evenly(rates: list[float], build_cost: float) -> Verdict:
    """The verdict where each candidate fails as often as its rate says, to the nearest trial."""
    search = ChangePointSearch(len(rates), build_cost=build_cost)
    made = dict.fromkeys(range(len(rates)), 0)
    while (ask := search.propose()) is not None:
        before, after = made[ask.index], made[ask.index] + ask.trials
        failed = round(rates[ask.index] * after) - round(rates[ask.index] * before)
        search.observe(ask.index, failed=failed, passed=ask.trials - failed)
        made[ask.index] = after
    return search.verdict()


@pytest.mark.parametrize("build_cost", [0.0, 10.0])
@pytest.mark.parametrize("change", [32, 40, 48])
def test_without_chance_a_step_is_named_and_a_narrow_slope_is_not(change, build_cost):
    step = evenly([0.0] * change + [0.3] * (128 - change), build_cost)
    assert step.first_bad == change
    slope = evenly([0.3 * min(1.0, max(0.0, (i + 1 - change) / 8)) for i in range(128)], build_cost)
    assert slope.first_bad is None
    assert slope.confidence == 0.95
    assert (slope.low or 0) < change + 8
    assert (slope.high or 0) > change
