"""Both ends, before anything is searched between them: can they be tested, does it fail, do they differ."""

from __future__ import annotations

from repro import ui
from repro.bisect import replaying
from repro.bisect.trail import Trail
from repro.search import ChangePointSearch, Verdict

FIRST_BATCH = 20
"""Trials of an end to begin with."""
DIFFERENT = 0.9
"""From this probability of a change between the ends on, the search goes on between them."""
FEW = 16
"""So many candidates are versions, and where nothing changed the failing inputs run in all of them."""
PATIENCE = 5
"""Trials of either end that a comparison may take, in multiples of those that reproduce the failure."""


def announce(trail: Trail) -> None:
    """Say what the ends may cost, and how rare a failure would be missed."""
    asked = trail.question.trials
    missed = 1.0 - 0.05 ** (1.0 / asked)
    trail.say(
        f"first both ends: up to {ui.count(asked, 'trial')} until {trail.label(trail.failing)} fails;"
        f" a failure rarer than {ui.percent(missed)} may not show (--trials)"
    )


def settle(trail: Trail) -> bool:
    """Move both ends inwards to candidates that can be tested; whether two are left."""
    trail.tryout.prefetch([trail.high, trail.low])
    high = _nearest_testable(trail, trail.high, -1)
    low = _nearest_testable(trail, trail.low, 1) if high is not None else None
    if low is None or high is None:
        return False
    trail.low, trail.high = low, high
    return low < high


def _nearest_testable(trail: Trail, start: int, step: int) -> int | None:
    """From an end inwards in growing steps, then back by halves.

    That takes few tries where what cannot be tested is all on that side: a test that is not born yet.
    """
    if testable(trail, start):
        return start
    bad, distance = start, 1
    while trail.low <= (index := start + step * distance) <= trail.high:
        if testable(trail, index):
            return _edge(trail, bad, index)
        bad, distance = index, 2 * distance
    last = trail.low if step < 0 else trail.high
    return _edge(trail, bad, last) if last != bad and testable(trail, last) else None


def _edge(trail: Trail, bad: int, good: int) -> int:
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if testable(trail, middle) else (good, middle)
    return good


def testable(trail: Trail, index: int) -> bool:
    """Whether a candidate shows passes or the failure looked for; it is tried unless that is known."""
    if index in trail.evidence.findings:
        return False
    return bool(trail.evidence.of(index).rated) or trail.rate(index, FIRST_BATCH) is not None


def reproduce(trail: Trail) -> bool:
    """Try the end that has to fail until it does, or the question's trials are used up."""
    while not (counts := trail.evidence.of(trail.failing)).failed:
        left = trail.question.trials - counts.rated
        if left <= 0 or trail.over:
            return False
        trail.rate(trail.failing, min(left, max(FIRST_BATCH, counts.rated)))
    return True


def compare(trail: Trail) -> Verdict:
    """Try both ends until they differ, or do not, or the patience for it is used up."""
    search = ChangePointSearch(2, trail.question.confidence, model=trail.question.model)
    ends = (trail.low, trail.high)
    for place, index in enumerate(ends):
        counts = trail.evidence.of(index)
        search.observe(place, failed=counts.failed, passed=counts.passed)
    while (ask := search.propose()) is not None and not trail.over:
        index = ends[ask.index]
        spent = trail.evidence.of(index).rated >= PATIENCE * trail.question.trials
        if search.belief.change >= DIFFERENT or spent:
            break
        if search.belief.change < 0.5 and trail.high - trail.low <= FEW:
            trail.tryout.prefetch(range(trail.low + 1, min(trail.high, trail.low + 1 + replaying.AHEAD)))
        more = trail.rate(index, trail.tryout.pace.batch(max(ask.trials, FIRST_BATCH // 2), share=1.0))
        if more is None:
            break
        search.observe(ask.index, failed=more.failed, passed=more.passed)
    return search.verdict()
