"""Failing inputs in place of statistics: where they fail every time, one run a candidate decides."""

from __future__ import annotations

import math
from collections.abc import Sequence

from repro.bisect.evidence import elements
from repro.bisect.kept import Inputs
from repro.bisect.trail import Trail

INPUTS, ROUNDS = 3, 5
"""Failing inputs that are replayed, and how often at least before they count as failing every time."""
BY_CHANCE = 0.001
"""How likely inputs may fail in every round although it is not they that decide."""
MOST_ROUNDS = 100
AHEAD = 3
"""Candidates that are prepared while the ends still run, where all of them will."""
SIDE_BY_SIDE = 3
"""Candidates whose replays share the machine: most of a replay's time is a process that begins."""


def steady_inputs(trail: Trail) -> list[Inputs]:
    """Failing inputs of the end that fails, as far as they fail there every time they are replayed."""
    kept = trail.tryout.kept(trail.failing, INPUTS)
    if not kept:
        trail.note("no failing inputs were kept, so rates decide")
        return []
    trail.replay_until(trail.failing, kept, ROUNDS)
    found = _steady(trail, kept)
    needed = rounds(trail, len(found)) if found else 0
    if needed > MOST_ROUNDS:
        trail.note("it fails nearly always, so rates decide")
        return []
    if needed > ROUNDS:
        trail.replay_until(trail.failing, found, ROUNDS + needed)
        found = _steady(trail, found)
    failed, run = trail.evidence.replayed(trail.failing, identities(kept))
    told = f"{len(kept)} failing inputs, replayed at {trail.label(trail.failing)}: {failed} of {run} failed"
    trail.note(told if found else f"{told}; they alone do not decide, so rates decide")
    return found


def _steady(trail: Trail, inputs: Sequence[Inputs]) -> list[Inputs]:
    steady = trail.evidence.steady_inputs(trail.failing)
    return [each for each in inputs if each.identity in steady]


def rounds(trail: Trail, inputs: int) -> int:
    """Rounds in which inputs would hardly fail always, if it fails as often as it may, and by chance."""
    highest = trail.evidence.rate(trail.failing, trail.failing, 0.95).high
    return max(ROUNDS, math.ceil(math.log(BY_CHANCE) / math.log(min(highest, 1.0 - 1e-9)) / inputs))


def differ(trail: Trail, inputs: Sequence[Inputs]) -> bool:
    """Whether inputs that always fail at one end do not at the other, and mean the same there."""
    here, there = trail.label(trail.failing), trail.label(trail.other)
    wanted = identities(inputs)
    trail.replay_until(trail.other, inputs, 1)
    trials = [trial for trial in trail.evidence.replays.get(trail.other, ()) if trial.seed in wanted]
    strange = [trial for trial in trials if not trial.outcome.counts]
    if strange or not trials:
        why = strange[0].outcome.value if strange else "none passed or failed"
        trail.note(
            f"failing inputs of {here} mean something else at {there} ({why}); the search works with rates"
        )
        return False
    failed, run = trail.evidence.replayed(trail.other, wanted)
    if failed == run:
        trail.note(f"inputs that fail at {here} fail at {there}, too")
    return failed < run


def identities(inputs: Sequence[Inputs]) -> list[int]:
    """What stands for the inputs in records."""
    return [each.identity for each in inputs]


def everywhere(trail: Trail, inputs: Sequence[Inputs]) -> tuple[int, int, bool]:
    """Replay inputs at every candidate between the ends where they were not replayed yet.

    Several run at a time. One that does not fail as the end does runs again alone, and only that counts: it
    may have been for want of memory.

    Returns:
        Candidates at which all of them fail, candidates at which they ran, and whether the same elements
        differ wherever they fail.
    """
    wanted = identities(inputs)
    left = [
        index
        for index in range(trail.low, trail.high + 1)
        if not trail.evidence.replayed(index, wanted)[1] and index not in trail.evidence.findings
    ]
    known = elements(trial for trial in trail.evidence.replays[trail.failing] if trial.seed in wanted)
    differing = trail.replay_side_by_side(
        left, inputs, SIDE_BY_SIDE, lambda trials: elements(trials) == known
    )
    for index in differing:
        if not trail.over:
            trail.replay(index, inputs, 1)
    ran = {index: trail.evidence.replayed(index, wanted) for index in trail.evidence.replays}
    fails = [index for index, (failed, run) in ran.items() if run and failed == run]
    places = {
        (seed, place)
        for index in fails
        for seed, place in elements(trail.evidence.replays[index]).items()
        if seed in wanted
    }
    return len(fails), sum(run > 0 for _, run in ran.values()), len(places) <= len(set(wanted))
