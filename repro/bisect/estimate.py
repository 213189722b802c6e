"""What a search will cost, found by running it on simulated outcomes before it is run on real ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median, quantiles

from repro.bisect.pace import Pace
from repro.search import ChangePointSearch, Model

RUNS = 8
"""Simulated searches: enough for a median, and a few tenths of a second."""
MOST_TRIALS = 200_000


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A question, as far as its cost depends on it.

    Args:
        candidates: how many there are.
        known: (failed, passed) of candidates that were tried.
        before, after: the rates on either side of the change, as far as they are known.
        confidence: what is asked for.
        model: the search's prior.
        pace: how long things take.
        batch: trials of one process, where so many are asked for.
        weight: trials that one of these is worth to the search.
        budget: seconds, or None.
        untestable: candidates that are known to be.
    """

    candidates: int
    known: Mapping[int, tuple[int, int]]
    before: float
    after: float
    confidence: float
    model: Model
    pace: Pace
    batch: Callable[[int], int]
    weight: int = 1
    budget: float | None = None
    untestable: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What simulated searches took.

    Args:
        trials: median number of further trials.
        visits: median number of candidates to prepare.
        seconds: median wall time.
        long: wall time that nine in ten stay below, seconds.
        decided: share of them that came to a name or a range that is final, within the budget.
        width: median number of candidates that are left.
    """

    trials: float
    visits: float
    seconds: float
    long: float
    decided: float
    width: float


@dataclass(frozen=True, kw_only=True)
class _Run:
    trials: int
    visits: int
    seconds: float
    decided: bool
    width: int


def estimate(plan: Plan, runs: int = RUNS) -> Estimate:
    """Simulate a search; the change is at another place in each run."""
    generator = random.Random(0)
    testable = [index for index in range(1, plan.candidates) if index not in plan.untestable]
    done = [_simulate(plan, generator.choice(testable or [1]), generator) for _ in range(runs)]
    seconds = sorted(run.seconds for run in done)
    return Estimate(
        trials=median(run.trials for run in done),
        visits=median(run.visits for run in done),
        seconds=median(seconds),
        long=quantiles(seconds, n=10, method="inclusive")[-1] if runs > 1 else seconds[0],
        decided=sum(run.decided for run in done) / runs,
        width=median(run.width for run in done),
    )


def _simulate(plan: Plan, change: int, generator: random.Random) -> _Run:
    search = ChangePointSearch(
        plan.candidates, plan.confidence, plan.pace.visit_cost, max_trials=MOST_TRIALS, model=plan.model
    )
    for index, (failed, passed) in plan.known.items():
        search.observe(index, failed=failed, passed=passed)
    for index in plan.untestable:
        search.skip(index)
    trials, seconds, visited = 0, 0.0, set(plan.known)
    while (ask := search.propose()) is not None and not _spent(seconds, plan.budget):
        count = plan.batch(ask.trials)
        rate = plan.after if ask.index >= change else plan.before
        failed = sum(generator.random() < rate for _ in range(count))
        search.observe(ask.index, failed=failed * plan.weight, passed=(count - failed) * plan.weight)
        trials += count
        seconds += plan.pace.start + count * plan.pace.trial
        seconds += 0.0 if ask.index in visited else plan.pace.build
        visited.add(ask.index)
    verdict = search.verdict()
    width = verdict.high - verdict.low if verdict.high is not None and verdict.low is not None else 0
    decided = verdict.first_bad is not None or verdict.kind in ("throughout", "absent")
    visits = len(visited) - len(plan.known)
    return _Run(trials=trials, visits=visits, seconds=seconds, decided=decided, width=width)


def _spent(seconds: float, budget: float | None) -> bool:
    return budget is not None and seconds >= budget
