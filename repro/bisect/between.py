"""The search proper, between two ends: ask, try, observe; its cost is told before it is spent."""

from __future__ import annotations

from copy import deepcopy

from repro import ui
from repro.bisect.answer import Belief
from repro.bisect.estimate import Plan, estimate
from repro.bisect.methods import Method
from repro.bisect.trail import Trail
from repro.search import ChangePointSearch, Verdict

NEGLIGIBLE = 1e-4
"""Probability below which a place is left out of what is kept."""
MOST_TRIALS = 50
"""Trials of one search at most, in multiples of those that reproduce the failure."""


def search_between(trail: Trail, method: Method) -> Verdict:
    """Ask, try, observe, until the verdict is final or the budget spent; places are the line's indexes."""
    first, search = trail.low, _begin(trail, method)
    _say_estimate(trail, method, search)
    while (ask := search.propose()) is not None and not trail.over:
        _prefetch(trail, search, ask.index, method.batch(ask.trials) * method.weight)
        counts = method.try_(first + ask.index, ask.trials)
        if counts is None:
            search.skip(ask.index)
        else:
            search.observe(ask.index, failed=counts[0], passed=counts[1])
        _say_progress(trail, search)
    trail.belief = [
        Belief(low=first + slot.low, high=first + slot.high, probability=slot.mass)
        for slot in search.belief.slots
        if slot.mass >= NEGLIGIBLE
    ]
    return search.verdict()


def _begin(trail: Trail, method: Method) -> ChangePointSearch:
    size = trail.high - trail.low + 1
    pace, question = trail.tryout.pace, trail.question
    search = ChangePointSearch(
        size,
        question.confidence,
        pace.visit_cost,
        max_trials=MOST_TRIALS * question.trials,
        model=question.model,
    )
    for index, (failed, passed) in method.known().items():
        if trail.low <= index <= trail.high:
            search.observe(index - trail.low, failed=failed, passed=passed)
    for index in trail.evidence.findings:
        if trail.low <= index <= trail.high:
            search.skip(index - trail.low)
    return search


def _prefetch(trail: Trail, search: ChangePointSearch, index: int, trials: int) -> None:
    """Prepare what would be asked for next if all of these trials failed, and if all passed."""
    following = []
    for failed in (trials, 0):
        supposed = deepcopy(search)
        supposed.observe(index, failed=failed, passed=trials - failed)
        ask = supposed.propose()
        following += [trail.low + ask.index] if ask is not None else []
    trail.tryout.prefetch([trail.low + index, *following])


def _say_progress(trail: Trail, search: ChangePointSearch) -> None:
    verdict = search.verdict()
    if verdict.low is not None and verdict.high is not None:
        low, high = (trail.label(trail.low + place) for place in (verdict.low, verdict.high))
        left = ui.count(verdict.high - verdict.low, "candidate")
        trail.say(f"  now: after {low}, not after {high} ({left}, {ui.percent(verdict.confidence)})")


def _say_estimate(trail: Trail, method: Method, search: ChangePointSearch) -> None:
    """What the search will cost, before it is spent, and what a budget can decide."""
    slot = max(search.belief.slots, key=lambda each: each.mass)
    known = {index - trail.low: counts for index, counts in method.known().items()}
    untestable = {index - trail.low for index in trail.evidence.findings}
    size = trail.high - trail.low + 1
    plan = Plan(
        candidates=size,
        known={place: counts for place, counts in known.items() if 0 <= place < size},
        before=slot.before.mean if slot.before.zero < 0.5 else 0.0,
        after=slot.after.mean if slot.after.one < 0.5 else 1.0,
        confidence=trail.question.confidence,
        model=trail.question.model,
        pace=trail.tryout.pace,
        batch=method.batch,
        weight=method.weight,
        budget=trail.left,
        untestable=frozenset(place for place in untestable if 0 <= place < size),
    )
    found = estimate(plan)
    trail.say(
        f"{ui.count(plan.candidates, 'candidate')} between {trail.label(trail.low)} and"
        f" {trail.label(trail.high)}: about {found.visits:.0f} to prepare and"
        f" {ui.count(round(found.trials), 'trial')}, {ui.duration(found.seconds)}"
        f" (nine times in ten below {ui.duration(found.long)})"
    )
    if plan.budget is not None:
        trail.say(
            f"{ui.duration(plan.budget)} of the budget are left: enough for a name in about"
            f" {ui.percent(found.decided)} of such searches; about {found.width:.0f} of the candidates"
            " remain in the median"
        )
