"""Comparisons: against published numbers, and by counting false findings."""

from __future__ import annotations

import functools
import math
import random

import pytest

from repro.stats import (
    PairedCounts,
    benjamini_hochberg,
    compare_paired,
    compare_unpaired,
    fisher,
    judge,
    mcnemar,
    mcnemar_anytime,
)


def pairs(rng, n, shared, a_alone, b_alone):
    """Counts where inputs fail in both cells with probability `shared`, and each cell fails alone too."""
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for _ in range(n):
        both = rng.random() < shared
        counts[both or rng.random() < a_alone, both or rng.random() < b_alone] += 1
    return PairedCounts(
        both=counts[True, True],
        a_only=counts[True, False],
        b_only=counts[False, True],
        neither=counts[False, False],
    )


# Known answers -------------------------------------------------------------------------------------------


def test_mcnemar_by_hand():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(0, 5) == pytest.approx(2 / 32)
    assert mcnemar(1, 9) == pytest.approx(2 * 11 / 1024)
    assert mcnemar(4, 4) == 1.0
    assert mcnemar(3, 12) == mcnemar(12, 3) == pytest.approx(0.03515625)
    assert 0.0 < mcnemar(45_000, 55_000) < 1e-200 or mcnemar(45_000, 55_000) == 0.0


def test_fisher_by_hand():
    assert fisher(3, 4, 1, 4) == pytest.approx(34 / 70)  # the lady tasting tea
    assert fisher(1, 10, 11, 14) == pytest.approx(0.002759456)  # a textbook's dieters
    assert fisher(0, 0, 3, 9) == fisher(0, 50, 0, 50) == fisher(7, 7, 9, 9) == 1.0
    assert fisher(2, 30, 9, 31) == pytest.approx(fisher(9, 31, 2, 30))
    with pytest.raises(ValueError, match="5 of 4"):
        fisher(5, 4, 0, 4)


def test_newcombe_as_published():
    """Newcombe, Stat. Med. 17 (1998) 873, table II, method 10."""
    compared = compare_unpaired(48, 80, 56, 70)
    assert (round(compared.low, 4), round(compared.high, 4)) == (0.0524, 0.3339)
    compared = compare_unpaired(0, 10, 10, 10)
    assert (round(compared.low, 4), compared.high) == (0.6075, 1.0)


def test_benjamini_hochberg_as_published():
    """The 15 p-values of Benjamini and Hochberg, J. R. Stat. Soc. B 57 (1995) 289: four findings at 5 %."""
    p_values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344]
    p_values += [0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    q_values = benjamini_hochberg(p_values)
    assert sum(q <= 0.05 for q in q_values) == 4
    assert q_values == sorted(q_values)
    shuffled = list(reversed(p_values))
    assert benjamini_hochberg(shuffled) == list(reversed(q_values))
    assert benjamini_hochberg([]) == []


def test_without_trials_nothing_is_said():
    paired, unpaired = compare_paired(PairedCounts()), compare_unpaired(0, 0, 3, 5)
    assert (paired.p_value, paired.difference) == (1.0, 0.0)
    assert (paired.low, paired.high) == (-1.0, 1.0)
    assert (unpaired.p_value, unpaired.low, unpaired.high) == (1.0, -1.0, 1.0)


def test_a_difference_has_the_sign_of_b():
    assert compare_paired(PairedCounts(b_only=9, neither=91)).low > 0
    assert compare_paired(PairedCounts(a_only=9, neither=91)).high < 0
    assert compare_unpaired(1, 100, 30, 100).low > 0


def test_pairs_see_what_rates_do_not():
    """Twenty inputs fail in both cells and eight more in one of them: the rates alone do not show it."""
    assert compare_paired(PairedCounts(both=20, b_only=8, neither=72)).p_value < 0.01
    assert compare_unpaired(20, 100, 28, 100).p_value > 0.2


# Calibration ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [5, 20, 60])
def test_mcnemar_keeps_its_level(n):
    """Exactly: over every way in which n seeds that differ can fall, under no difference."""
    chances = [math.comb(n, k) / 2**n for k in range(n + 1)]
    for level in (0.01, 0.05, 0.2):
        assert sum(chances[k] for k in range(n + 1) if mcnemar(k, n - k) <= level) <= level
    halved = sum(chances[k] for k in range(n + 1) if mcnemar(k, n - k) / 2 <= 0.2)
    assert halved > 0.2  # one tail's probability would not keep it


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5])
def test_fisher_keeps_its_level(p):
    chances = [math.comb(25, k) * p**k * (1 - p) ** (25 - k) for k in range(26)]
    for level in (0.01, 0.05, 0.2):
        false = sum(
            chances[a] * chances[b] for a in range(26) for b in range(26) if fisher(a, 25, b, 25) <= level
        )
        assert false <= level


@functools.cache
def anytime_p(a, b):
    return mcnemar_anytime(a, b)


def ever_finds(p_value, steps):
    """Probability of p <= 5 % at some time, looked at after every seed that differs, under no difference."""
    alive, found = {0: 1.0}, 0.0
    for n in range(1, steps + 1):
        after: dict[int, float] = {}
        for a, chance in alive.items():
            for next_a in (a, a + 1):
                after[next_a] = after.get(next_a, 0.0) + chance / 2
        found += sum(chance for a, chance in after.items() if p_value(a, n - a) <= 0.05)
        alive = {a: chance for a, chance in after.items() if p_value(a, n - a) > 0.05 and chance > 1e-12}
    return found


def test_the_anytime_p_value_survives_peeking():
    assert ever_finds(anytime_p, 200) <= 0.05
    assert ever_finds(functools.cache(mcnemar), 200) > 0.1


@pytest.mark.parametrize(("shared", "alone"), [(0.0, 0.05), (0.2, 0.05), (0.1, 0.3)])
def test_intervals_of_differences_hold(shared, alone):
    rng = random.Random(8)
    b_alone = alone + 0.1
    true = (1 - shared) * 0.1
    paired = unpaired = 0
    for _ in range(400):
        counts = pairs(rng, 80, shared, alone, b_alone)
        compared = compare_paired(counts)
        paired += compared.low <= true <= compared.high
        rates = shared + (1 - shared) * alone, shared + (1 - shared) * b_alone
        failed = [sum(rng.random() < rate for _ in range(80)) for rate in rates]
        compared = compare_unpaired(failed[0], 80, failed[1], 80)
        unpaired += compared.low <= true <= compared.high
    assert paired / 400 >= 0.92
    assert unpaired / 400 >= 0.92


def test_false_findings_stay_below_the_rate():
    """Forty cells against one, of which ten differ: on average over runs, and not so without control."""
    rng = random.Random(9)
    shares: dict[str, list[float]] = {"judged": [], "plain": []}
    power = 0
    for _ in range(60):
        compared = {}
        for cell in range(40):
            extra = 0.25 if cell < 10 else 0.0
            a = sum(rng.random() < 0.1 for _ in range(60)), sum(rng.random() < 0.1 + extra for _ in range(60))
            compared[cell] = compare_paired(PairedCounts(a_only=a[0], b_only=a[1], neither=120 - sum(a)))
        judged = judge(compared, 0.05)
        found = [cell for cell, one in judged.items() if one.differs]
        plain = [cell for cell, one in compared.items() if one.p_value <= 0.2]
        power += sum(cell < 10 for cell in found)
        for name, cells in (("judged", found), ("plain", plain)):
            shares[name].append(sum(cell >= 10 for cell in cells) / max(len(cells), 1))
    assert sum(shares["judged"]) / 60 <= 0.05
    assert sum(shares["plain"]) / 60 > 0.05
    assert power / 600 > 0.4


@pytest.mark.slow
def test_false_findings_where_every_pair_of_cells_is_compared():
    """All 45 pairs of ten cells on the same seeds: the p-values hang together; two cells fail more."""
    rng = random.Random(10)
    share = 0.0
    for _ in range(120):
        fails = []
        hard = [rng.random() < 0.1 for _ in range(80)]
        for cell in range(10):
            rate = 0.3 if cell < 2 else 0.05
            fails.append([shared or rng.random() < rate for shared in hard])
        compared = {}
        for a in range(10):
            for b in range(a):
                both = list(zip(fails[a], fails[b], strict=True))
                counts = PairedCounts(a_only=both.count((True, False)), b_only=both.count((False, True)))
                compared[a, b] = compare_paired(counts)
        found = [pair for pair, one in judge(compared).items() if one.differs]
        share += sum((a < 2) == (b < 2) for a, b in found) / max(len(found), 1)
    assert share / 120 <= 0.05
