"""The search's contract: what it asks, what it answers, and what it refuses."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.search import ChangePointSearch, Verdict
from repro.search.posterior import DEFAULT_MODEL, posterior

KINDS = {"appears", "rises", "falls", "throughout", "absent", "inconclusive"}


def run(search: ChangePointSearch, rates: list[float], seed: int, untestable: frozenset[int] = frozenset()):
    """Drive a search over simulated candidates; returns its verdict and the asks it made."""
    dice = random.Random(seed)
    asks = []
    while (ask := search.propose()) is not None:
        asks.append(ask)
        if ask.index in untestable:
            search.skip(ask.index)
            continue
        failed = sum(dice.random() < rates[ask.index] for _ in range(ask.trials))
        search.observe(ask.index, failed=failed, passed=ask.trials - failed)
    return search.verdict(), asks


def step(size: int, change: int, old: float, new: float) -> list[float]:
    return [old] * change + [new] * (size - change)


@pytest.mark.parametrize(
    ("rates", "kind", "first_bad"),
    [
        (step(32, 20, 0, 1), "appears", 20),
        (step(32, 1, 0, 1), "appears", 1),
        (step(32, 31, 0, 1), "appears", 31),
        (step(32, 20, 1, 0), "falls", 20),
        (step(2, 1, 0, 1), "appears", 1),
        ([1.0] * 32, "throughout", None),
        ([0.0] * 32, "absent", None),
    ],
)
def test_deterministic_outcomes_give_the_plain_answer(rates, kind, first_bad):
    verdict, _ = run(ChangePointSearch(len(rates)), rates, seed=1)
    assert (verdict.kind, verdict.first_bad) == (kind, first_bad)


def test_a_rise_has_the_rates_of_both_sides():
    verdict, _ = run(ChangePointSearch(64), step(64, 40, 0.1, 0.8), seed=5)
    assert verdict.kind == "rises"
    assert verdict.first_bad == 40
    assert verdict.rate_before.low <= 0.1 <= verdict.rate_before.high
    assert verdict.rate_after.low <= 0.8 <= verdict.rate_after.high


def test_both_neighbours_run_again_before_a_name_is_stated():
    search = ChangePointSearch(64)
    for index in range(64):
        search.observe(index, failed=0 if index < 40 else 30, passed=30 if index < 40 else 0)
    assert search.verdict().first_bad is None
    verdict, asks = run(search, step(64, 40, 0, 1), seed=1)
    assert verdict.first_bad == 40
    order = [ask.index for ask in asks]
    assert set(order) == {39, 40}
    assert order.count(39) >= 3
    assert order.count(40) >= 3
    assert all(left != right for left, right in pairwise(order))


def test_prior_trials_that_do_not_replay_are_not_named():
    search = ChangePointSearch(64)
    for index in range(64):
        search.observe(index, failed=0 if index < 40 else 30, passed=30 if index < 40 else 0)
    verdict, _ = run(search, step(64, 20, 0, 1), seed=1)
    assert verdict.first_bad != 40


@pytest.mark.parametrize("untestable", [{39}, {40}, {38, 39, 40, 41, 42}])
def test_untestable_candidates_widen_the_answer_to_a_range(untestable):
    rates = step(64, 40, 0, 1)
    verdict, _ = run(ChangePointSearch(64), rates, seed=1, untestable=frozenset(untestable))
    assert verdict.kind == "appears"
    assert verdict.first_bad is None
    assert (verdict.low, verdict.high) == (min(untestable | {40}) - 1, max(untestable | {39}) + 1)
    assert verdict.confidence == 0.95


def test_untestable_ends_do_not_stop_the_search():
    verdict, _ = run(ChangePointSearch(64), step(64, 40, 0, 1), seed=1, untestable=frozenset({0, 1, 62, 63}))
    assert verdict.first_bad == 40


def test_nothing_to_test_is_inconclusive():
    verdict, asks = run(ChangePointSearch(8), [0.0] * 8, seed=1, untestable=frozenset(range(8)))
    assert verdict.kind == "inconclusive"
    assert verdict.rate_before.rate is None
    assert len(asks) == 8


def test_a_budget_ends_in_a_range():
    verdict, asks = run(ChangePointSearch(128, max_trials=40), step(128, 90, 0.05, 0.3), seed=3)
    assert verdict.first_bad is None
    assert sum(ask.trials for ask in asks) < 60


def test_known_trials_cost_nothing_of_the_budget():
    search = ChangePointSearch(64, max_trials=60)
    search.observe(0, failed=0, passed=500)
    search.observe(63, failed=500, passed=0)
    verdict, _ = run(search, step(64, 30, 0, 1), seed=1)
    assert verdict.first_bad == 30


def test_builds_are_saved_where_they_are_dear():
    rates = step(128, 77, 0, 0.3)
    _, cheap = run(ChangePointSearch(128), rates, seed=2)
    verdict, dear = run(ChangePointSearch(128, build_cost=100), rates, seed=2)
    assert verdict.first_bad == 77
    assert len({ask.index for ask in dear}) <= 12 < len({ask.index for ask in cheap})


def test_looking_for_a_fix_is_the_same_search_turned_round():
    verdict, _ = run(ChangePointSearch(64, model=DEFAULT_MODEL.reversed()), step(64, 40, 0.4, 0), seed=1)
    assert (verdict.kind, verdict.first_bad) == ("falls", 40)


def test_a_search_of_thousands_is_quick():
    start = time.process_time()
    verdict, _ = run(ChangePointSearch(5000), step(5000, 3333, 0, 0.3), seed=4)
    assert verdict.first_bad == 3333
    assert time.process_time() - start < 5.0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"candidates": 0}, "at least one candidate"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"build_cost": -1.0}, "build_cost must not be negative"),
        ({"build_cost": float("nan")}, "build_cost must not be negative"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        ChangePointSearch(**arguments)


def test_observations_out_of_range_are_refused():
    search = ChangePointSearch(4)
    with pytest.raises(ValueError, match="no candidate 4"):
        search.observe(4, failed=0, passed=1)
    with pytest.raises(ValueError, match="no candidate -1"):
        search.skip(-1)
    with pytest.raises(ValueError, match="must not be negative"):
        search.observe(0, failed=-1, passed=1)


observations = st.lists(
    st.tuples(st.integers(0, 19), st.integers(0, 40), st.integers(0, 40), st.booleans()), max_size=25
)


@settings(max_examples=40, deadline=None)
@given(observations, st.floats(0, 200), st.floats(0.5, 0.999))
def test_any_observations_give_a_question_and_a_verdict(rows, build_cost, confidence):
    searches = [ChangePointSearch(20, confidence, build_cost) for _ in range(2)]
    skipped = set()
    for index, failed, passed, skip in rows:
        for search in searches:
            search.propose()
            search.observe(index, failed=failed, passed=passed)
            if skip:
                search.skip(index)
        skipped |= {index} if skip else set()
    first, second = ((search.propose(), search.verdict()) for search in searches)
    assert first == second
    ask, verdict = first
    assert ask is None or (0 <= ask.index < 20 and ask.trials >= 1 and ask.index not in skipped)
    check(verdict, confidence)


def check(verdict: Verdict, confidence: float) -> None:
    assert verdict.kind in KINDS
    assert 0.0 <= verdict.confidence <= confidence
    if verdict.low is not None and verdict.high is not None:
        assert 0 <= verdict.low <= verdict.high <= 19
    if verdict.first_bad is not None:
        assert (verdict.low, verdict.high) == (verdict.first_bad - 1, verdict.first_bad)
        assert verdict.confidence == confidence


counts = st.dictionaries(
    st.integers(0, 19), st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=12
)


@settings(deadline=None)
@given(counts)
def test_a_posterior_sums_to_one(data):
    belief = posterior(data, 20, DEFAULT_MODEL)
    assert belief.change + belief.throughout + belief.absent == pytest.approx(1.0)
    assert sum(slot.width for slot in belief.slots) == 19


@settings(deadline=None)
@given(counts)
def test_time_reversed_data_give_the_reversed_posterior(data):
    ahead = posterior(data, 20, DEFAULT_MODEL)
    back = posterior({19 - index: count for index, count in data.items()}, 20, DEFAULT_MODEL.reversed())
    assert [slot.mass for slot in ahead.slots] == pytest.approx([slot.mass for slot in back.slots[::-1]])
    assert (ahead.throughout, ahead.absent) == pytest.approx((back.throughout, back.absent))


@settings(deadline=None)
@given(counts)
def test_an_untested_candidate_tells_nothing(data):
    belief = posterior(data, 20, DEFAULT_MODEL)
    same = posterior({**data, **{i: (0, 0) for i in range(20) if i not in data}}, 20, DEFAULT_MODEL)
    assert same.throughout == pytest.approx(belief.throughout)
    assert same.change == pytest.approx(belief.change)
