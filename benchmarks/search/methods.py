"""The searches that are compared, and the bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil, log, log2

import numpy as np
from git_bayesect import Bisector

from benchmarks.search.worlds import Point, World
from repro.search import ChangePointSearch

ASKED = 0.95
LEDGER = 200


@dataclass(frozen=True)
class Answer:
    """(low, high] is where the change is said to be; None: no change. `sure`: stated, not undecided."""

    low: int | None
    high: int | None
    sure: bool
    claimed: float
    named: bool
    kind: str = ""


def ours(world: World, build: float, ledger: int) -> Answer:
    search = ChangePointSearch(world.point.size, ASKED, build, max_trials=6000)
    ends = (0, world.point.size - 1) if ledger else ()
    for end in ends:
        failed = sum(world.fails(end) for _ in range(ledger))
        search.observe(end, failed=failed, passed=ledger - failed)
    world.trials, world.built = 0, set()
    while (ask := search.propose()) is not None:
        if not world.visit(ask.index):
            search.skip(ask.index)
            continue
        failed = sum(world.fails(ask.index) for _ in range(ask.trials))
        search.observe(ask.index, failed=failed, passed=ask.trials - failed)
    world.built -= set(ends)
    verdict = search.verdict()
    sure = verdict.kind != "inconclusive" and verdict.confidence >= ASKED - 1e-9
    return Answer(
        verdict.low, verdict.high, sure, verdict.confidence, verdict.first_bad is not None, verdict.kind
    )


def bayesect(world: World) -> Answer:
    size = world.point.size
    peer = Bisector(np.full(size, 1.0 / size))
    cap = 3000 if world.steps else 1000
    skipped: set[int] = set()
    while world.trials < cap and peer.distribution.max() < ASKED:
        pick = int(peer.select())  # index 0 is its newest
        index = size - 1 - pick
        if index in skipped:
            break  # with few candidates left it asks again and again for one that cannot be tested
        if not world.visit(index):
            skipped.add(index)
        peer.record(pick, None if index in skipped else world.fails(index))
    claimed = float(peer.distribution.max())
    first_bad = size - 1 - int(peer.distribution.argmax())
    return Answer(first_bad - 1, first_bad, claimed >= ASKED, claimed, True)


def _bisect(world: World, repeats: int) -> Answer:
    """`git bisect run` of a script that fails at the first failure in `repeats` trials."""
    low, high = 0, world.point.size - 1
    rising = world.point.new >= world.point.old
    while True:
        inner = [i for i in range(low + 1, high) if i not in world.built or i not in world.untestable]
        if not inner:
            return Answer(low, high, True, 1.0, high == low + 1)
        middle = min(inner, key=lambda i: abs(i - (low + high) // 2))
        if world.visit(middle):
            bad = any(world.fails(middle) for _ in range(repeats))
            low, high = (low, middle) if bad == rising else (middle, high)


def pilot(world: World) -> Answer:
    """`git bisect` with as many repeats as a pilot at the failing end suggests."""
    end = world.point.size - 1 if world.point.new >= world.point.old else 0
    failed = 0
    while failed < 5 and world.trials < 100:
        failed += world.fails(end)
    rate = failed / world.trials
    slip = (1 - ASKED) / max(1.0, log2(world.point.size))
    repeats = 1 if rate >= 1 else ceil(log(slip) / log(1 - rate)) if rate > 0 else 100
    return _bisect(world, repeats)


def told(world: World) -> Answer:
    """Greedy search that is told both rates, and that there is a change."""
    size, old, new = world.point.size, world.point.old, world.point.new
    logs = np.zeros(size - 1)  # change at 1 ... size - 1
    chance = [(max(p, 1e-300), max(1 - p, 1e-300)) for p in (old, new)]
    blocked: set[int] = set()
    while True:
        mass = np.exp(logs - logs.max())
        mass /= mass.sum()
        if mass.max() >= ASKED or world.trials >= 3000:
            break
        after = np.concatenate([[0.0], np.cumsum(mass)])
        fails = after * new + (1 - after) * old
        gain = _entropy(fails) - after * _entropy(new) - (1 - after) * _entropy(old)
        gain[list(blocked)] = -1.0
        index = int(gain.argmax())
        if gain[index] <= 1e-12:
            break
        if not world.visit(index):
            blocked.add(index)
            continue
        outcome = 0 if world.fails(index) else 1
        logs[:index] += log(chance[1][outcome])
        logs[index:] += log(chance[0][outcome])
    first_bad = int(mass.argmax()) + 1
    return Answer(first_bad - 1, first_bad, bool(mass.max() >= ASKED), float(mass.max()), True)


def _entropy(p: np.ndarray | float) -> np.ndarray:
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return -(p * np.log2(p) + (1 - p) * np.log2(1 - p))


def bound(point: Point) -> float | None:
    """The usual estimate of what a search that is told the rates needs (docs/search.md)."""
    old, new = sorted((point.old, point.new))
    if old == new:
        return None
    shares = np.linspace(0.0005, 0.9995, 1999)
    mixed = (
        _entropy(shares * new + (1 - shares) * old) - shares * _entropy(new) - (1 - shares) * _entropy(old)
    )
    ends = sum(1 / d for d in (_kl(old, new), _kl(new, old)) if d)
    return float(ASKED * log2(point.size) / mixed.max() + log2(1 / (1 - ASKED)) * ends)


def _kl(p: float, q: float) -> float | None:
    terms = [(a, b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0]
    return None if any(b == 0 for _, b in terms) else sum(a * log2(a / b) for a, b in terms)


Method = Callable[[World], Answer]


def methods(point: Point) -> Iterator[tuple[str, float, Method]]:
    """(name, the build cost it was told of, function): the methods that a point is run with."""
    for build in (0, 10, 100):
        yield f"ours, build {build}", build, partial(ours, build=build, ledger=0)
    if point.shape == "step":
        yield "ours, ledger", 0, partial(ours, build=0, ledger=LEDGER)
    yield "git_bayesect", 0, bayesect
    for repeats in (1, 3, 5, 10, 20):
        yield f"git bisect k={repeats}", 0, partial(_bisect, repeats=repeats)
    yield "git bisect, pilot", 0, pilot
    if point.shape in ("step", "untestable"):
        yield "told the rates", 0, told
