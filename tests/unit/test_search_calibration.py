"""Every probability that the search states, against how often the statement held in simulations.

Seeds are fixed, so a failure here is a change of behaviour, not bad luck. Thresholds leave three standard
errors of the number of runs below the claim; docs/search.md has the same measures over more runs.
"""

from __future__ import annotations

import random
from math import sqrt

import pytest

from repro.search import ChangePointSearch, Verdict, estimate_rate


def search_once(
    rates: list[float], seed: int, *, build_cost: float = 0.0, confidence: float = 0.95
) -> Verdict:
    dice = random.Random(seed)
    search = ChangePointSearch(len(rates), confidence, build_cost, max_trials=4000)
    while (ask := search.propose()) is not None:
        failed = sum(dice.random() < rates[ask.index] for _ in range(ask.trials))
        search.observe(ask.index, failed=failed, passed=ask.trials - failed)
    return search.verdict()


def floor(claim: float, runs: int) -> float:
    return claim - 3.0 * sqrt(claim * (1.0 - claim) / runs)


def simulate(
    old: float, new: float, runs: int, size: int = 32, **options: float
) -> list[tuple[int, Verdict]]:
    rows = []
    for seed in range(runs):
        change = random.Random(f"{old} {new} {seed}").randrange(1, size)
        rates = [old] * change + [new] * (size - change)
        rows.append((change, search_once(rates, seed, **options)))
    return rows


STEPS = [(0, 0.1), (0, 0.3), (0.05, 0.3), (0.003, 0.09), (0.2, 0.8), (0.8, 0.2), (0.3, 0.05)]


def check_names(rows: list[tuple[int, Verdict]]) -> None:
    stated = [(change, verdict) for change, verdict in rows if verdict.confidence >= 0.9]
    right = [verdict.low < change <= verdict.high for change, verdict in stated if verdict.low is not None]
    claimed = sum(verdict.confidence for _, verdict in stated) / len(stated)
    assert len(stated) >= 0.9 * len(rows)
    assert sum(right) / len(stated) >= floor(claimed, len(stated))


@pytest.mark.parametrize(("old", "new"), [(0, 0.3), (0.2, 0.8)])
def test_an_answer_holds_as_often_as_it_claims(old, new):
    check_names(simulate(old, new, 40))


@pytest.mark.slow
@pytest.mark.parametrize("build_cost", [0.0, 100.0])
@pytest.mark.parametrize(("old", "new"), STEPS)
def test_an_answer_holds_as_often_as_it_claims_everywhere(old, new, build_cost):
    check_names(simulate(old, new, 120, build_cost=build_cost))


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_other_confidences_hold_too(confidence):
    rows = simulate(0.05, 0.3, 120, confidence=confidence)
    named = [change == verdict.first_bad for change, verdict in rows if verdict.first_bad is not None]
    assert sum(named) / len(named) >= floor(confidence, len(named))


@pytest.mark.parametrize(("rate", "kind"), [(0, "absent"), (0.3, "throughout"), (1, "throughout")])
def test_no_change_is_said_where_there_is_none(rate, kind):
    verdicts = [search_once([rate] * 32, seed) for seed in range(20)]
    assert sum(verdict.kind == kind for verdict in verdicts) >= 18


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_innocent_candidates_are_not_named(rate):
    verdicts = [search_once([rate] * 32, seed) for seed in range(100)]
    assert sum(verdict.kind == "throughout" for verdict in verdicts) >= 90
    assert sum(verdict.first_bad is not None for verdict in verdicts) <= 5


@pytest.mark.slow
@pytest.mark.parametrize(("size", "first", "width", "most"), [(32, 12, 8, 12), (128, 48, 32, 4)])
def test_a_slope_is_rarely_taken_for_a_step(size, first, width, most):
    rates = [0.3 * min(1.0, max(0.0, (index + 1 - first) / width)) for index in range(size)]
    verdicts = [search_once(rates, seed) for seed in range(40)]
    assert sum(verdict.first_bad is not None for verdict in verdicts) <= most


@pytest.mark.parametrize("old", [0, 0.05])
def test_what_tells_slopes_does_not_keep_steps_from_their_name(old):
    verdicts = [search_once([old] * 12 + [0.3] * 20, seed) for seed in range(20)]
    assert sum(verdict.first_bad is not None for verdict in verdicts) >= 19


@pytest.mark.slow
def test_of_two_steps_one_is_named_or_both_are_in_the_range():
    rates = [0.0] * 40 + [0.1] * 40 + [0.3] * 48
    verdicts = [search_once(rates, seed) for seed in range(60)]
    false = [v for v in verdicts if v.first_bad is not None and v.first_bad not in (40, 80)]
    assert len(false) <= 60 - 60 * floor(0.95, 60)


@pytest.mark.slow
def test_rates_lie_in_their_intervals_although_the_search_chose_when_to_stop():
    for old, new in ((0.05, 0.3), (0.2, 0.8)):
        right = [verdict for change, verdict in simulate(old, new, 120) if verdict.first_bad == change]
        before = sum(v.rate_before.low <= old <= v.rate_before.high for v in right) / len(right)
        after = sum(v.rate_after.low <= new <= v.rate_after.high for v in right) / len(right)
        assert min(before, after) >= floor(0.95, len(right))


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3, 0.9, 1.0])
def test_intervals_hold_at_every_moment_at_once(rate):
    dice = random.Random(f"intervals {rate}")
    missed = 0
    for _ in range(60):
        failed, outside = 0, False
        for trial in range(1, 301):
            failed += dice.random() < rate
            if trial % 5 == 0:
                estimate = estimate_rate(failed, trial - failed)
                outside = outside or not estimate.low <= rate <= estimate.high
        missed += outside
    assert missed / 60 <= 1.0 - floor(0.95, 60)


def test_an_interval_is_the_whole_range_before_the_first_trial_and_narrows():
    assert (estimate_rate(0, 0).low, estimate_rate(0, 0).high) == (0.0, 1.0)
    widths = [estimate_rate(n, n).high - estimate_rate(n, n).low for n in (1, 10, 100, 1000)]
    assert widths == sorted(widths, reverse=True)
    assert estimate_rate(0, 100).low == 0.0
    assert estimate_rate(100, 0).high == 1.0


@pytest.mark.parametrize(("failed", "confidence"), [(-1, 0.95), (1, 0.0), (1, 1.0)])
def test_an_impossible_interval_is_refused(failed, confidence):
    with pytest.raises(ValueError, match="must"):
        estimate_rate(failed, 1, confidence)
