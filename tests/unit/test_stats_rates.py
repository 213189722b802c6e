"""Intervals: against published numbers, and by counting how often they hold."""

from __future__ import annotations

import functools
import math
import random

import pytest

from repro.stats import Method, anytime, clean_runs_needed, exact, rate_ruled_out, wilson
from repro.stats.special import beta_cdf

RATES = (0.0, 0.003, 0.05, 0.3, 0.5, 1.0)


def binomial(n, p):
    """Probabilities of 0 to n failures in n trials."""
    if p in (0.0, 1.0):
        return [float(k == n * p) for k in range(n + 1)]
    logs = math.log(p), math.log1p(-p)
    return [math.comb(n, k) * math.exp(k * logs[0] + (n - k) * logs[1]) for k in range(n + 1)]


@pytest.mark.parametrize(
    ("failed", "trials", "low", "high"),
    [  # Newcombe, Stat. Med. 17 (1998) 857, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_as_published(failed, trials, low, high):
    rate = wilson(failed, trials)
    assert (round(rate.low, 4), round(rate.high, 4)) == (low, high)


@pytest.mark.parametrize(
    ("failed", "trials", "low", "high"),
    [  # the same table, method 5
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0000, 0.1684),
        (1, 29, 0.0009, 0.1776),
    ],
)
def test_exact_as_published(failed, trials, low, high):
    rate = exact(failed, trials)
    assert (round(rate.low, 4), round(rate.high, 4)) == (low, high)


@pytest.mark.parametrize("interval", [wilson, exact, anytime])
def test_edges(interval):
    nothing = interval(0, 0)
    assert (nothing.rate, nothing.low, nothing.high) == (None, 0.0, 1.0)
    for failed, trials in [(0, 7), (7, 7), (1, 1), (3, 10**6), (10**6 - 1, 10**6)]:
        rate = interval(failed, trials)
        assert 0.0 <= rate.low <= rate.rate <= rate.high <= 1.0
        mirrored = interval(trials - failed, trials)
        assert mirrored.low == pytest.approx(1 - rate.high, abs=1e-12)
    for wrong in [(-1, 5), (6, 5)]:
        with pytest.raises(ValueError, match="failures in"):
            interval(*wrong)
    with pytest.raises(ValueError, match="confidence"):
        interval(1, 2, 1.0)


def test_json_is_the_contract():
    assert wilson(1, 2).to_json().keys() == {"failed", "trials", "rate", "low", "high"}
    assert (wilson(1, 2).method, anytime(1, 2).method) == (Method.WILSON, Method.ANYTIME)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (0.5, 0.5), (3, 200), (400, 7), (5000, 5000), (1, 10**6)])
def test_beta_cdf(a, b):
    assert beta_cdf(0.0, a, b) == 0.0
    assert beta_cdf(1.0, a, b) == 1.0
    for x in (1e-6, 0.01, 0.3, 0.5, 0.99):
        assert beta_cdf(x, a, b) == pytest.approx(1 - beta_cdf(1 - x, b, a), abs=1e-9)


def test_beta_cdf_is_the_binomial_tail():
    for p in (0.01, 0.3, 0.9):
        probabilities = binomial(60, p)
        for k in range(1, 61):
            assert beta_cdf(p, k, 61 - k) == pytest.approx(math.fsum(probabilities[k:]), abs=1e-12)


# Calibration, exact: the probability of every count, not a sample of them ---------------------------------


def coverage(interval, n, p):
    return math.fsum(
        chance for failed, chance in enumerate(binomial(n, p)) if p in interval(failed, n).interval
    )


def mean_coverage(interval, n):
    rates = [(2 * i + 1) / 400 for i in range(200)]
    intervals = [interval(failed, n).interval for failed in range(n + 1)]
    held = [
        math.fsum(chance for failed, chance in enumerate(binomial(n, p)) if p in intervals[failed])
        for p in rates
    ]
    return sum(held) / len(held)


@pytest.mark.parametrize("n", [10, 50, 100])
def test_wilson_holds_on_average_over_rates(n):
    assert mean_coverage(wilson, n) == pytest.approx(0.95, abs=0.006)
    assert mean_coverage(functools.partial(wilson, confidence=0.9), n) == pytest.approx(0.9, abs=0.012)


@pytest.mark.parametrize("n", [7, 40, 80])
def test_exact_holds_at_every_rate(n):
    for p in (*RATES, 0.01, 0.02, 0.1, 0.45, 0.97):
        assert coverage(exact, n, p) >= 0.95
    assert min(coverage(wilson, n, i / 200) for i in range(1, 100)) < 0.95  # the check can fail


# Calibration of the sequence: the exact probability that it ever misses, looked at after every trial -----


def ever_misses(interval, p, trials):
    """Probability that the interval leaves the true rate out at some time up to `trials`.

    The opponent looks after every trial and stops at the first miss: no way of stopping does worse.
    """
    alive = {0: 1.0}
    missed = 0.0
    for n in range(1, trials + 1):
        after: dict[int, float] = {}
        for failed, chance in alive.items():
            if p < 1.0:
                after[failed] = after.get(failed, 0.0) + chance * (1 - p)
            if p > 0.0:
                after[failed + 1] = after.get(failed + 1, 0.0) + chance * p
        alive = {}
        for failed, chance in after.items():
            if interval(failed, n, p):
                alive[failed] = chance
            else:
                missed += chance
        alive = {failed: chance for failed, chance in alive.items() if chance > 1e-12}
    return missed


@functools.cache
def anytime_holds(failed, n, p):
    return p in anytime(failed, n).interval


@functools.cache
def wilson_holds(failed, n, p):
    return p in wilson(failed, n).interval


@pytest.mark.parametrize("p", RATES)
def test_the_sequence_holds_at_all_times(p):
    assert ever_misses(anytime_holds, p, trials=150) <= 0.05


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5])
def test_a_wilson_interval_does_not_survive_peeking(p):
    """Why there is a sequence; and that the check above can fail."""
    assert ever_misses(wilson_holds, p, trials=150) > 0.15


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.003, 0.05, 0.3, 0.5])
def test_the_sequence_holds_over_long_runs(p):
    """500 runs of 3,000 trials, each judged at its worst moment: where the martingale peaks."""
    rng = random.Random(f"{p}")
    missed = {anytime: 0, wilson: 0}
    for _ in range(500):
        failed, value, peak, worst = 0, 0.0, -math.inf, (0, 1)
        for n in range(1, 3001):
            fails = rng.random() < p
            value += math.log((failed if fails else n - 1 - failed) + 0.5) - math.log(
                n * (p if fails else 1 - p)
            )
            failed += fails
            if value > peak:
                peak, worst = value, (failed, n)
        for interval in missed:
            missed[interval] += p not in interval(*worst).interval
    assert missed[anytime] <= 500 * 0.05
    assert missed[wilson] > 500 * 0.15


def test_the_sequence_costs_little_width():
    for failed, trials in [(0, 50), (10, 100), (300, 1000)]:
        fixed, always = wilson(failed, trials), anytime(failed, trials)
        assert fixed.high - fixed.low < always.high - always.low < 2.2 * (fixed.high - fixed.low)


# Clean runs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.003, 0.01, 0.1, 0.3, 0.9])
def test_clean_runs(rate):
    n = clean_runs_needed(rate)
    assert (1 - rate) ** n <= 0.05 < (1 - rate) ** (n - 1)
    assert rate_ruled_out(n) <= rate < rate_ruled_out(n - 1)


def test_rule_of_three():
    assert clean_runs_needed(0.01) == 299
    assert rate_ruled_out(1000) == pytest.approx(3 / 1000, rel=0.01)
    assert rate_ruled_out(0) == 1.0
    with pytest.raises(ValueError, match="between 0 and 1"):
        clean_runs_needed(0.0)
    with pytest.raises(ValueError, match="-1 runs"):
        rate_ruled_out(-1)
