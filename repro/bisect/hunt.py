"""One search along one line: the ends, inputs that replay, the search between them, and its check."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from repro.bisect import ends, replaying
from repro.bisect.answer import Answer
from repro.bisect.between import search_between
from repro.bisect.conclude import changed, unchanged
from repro.bisect.evidence import side
from repro.bisect.kept import Inputs
from repro.bisect.methods import Rates, Replays
from repro.bisect.question import Find
from repro.bisect.trail import Trail
from repro.search import Verdict

SIDE = log(20.0)
"""A neighbour of the boundary belongs to a side once its trials are this much likelier there."""


def hunt(trail: Trail) -> Answer:
    """Search; the answer is honest about what a budget or a limit left open.

    Args:
        trail: the line and the question.

    Raises:
        Interrupted, NotReadyError: as `Runner.run`; all trials so far are in the ledger.
    """
    trail.learn()
    ends.announce(trail)
    if not ends.settle(trail):
        trail.note("fewer than two candidates can be tested")
        return unchanged(trail, "inconclusive")
    if not ends.reproduce(trail):
        if trail.evidence.of(trail.other).failed:
            trail.note(f"{trail.label(trail.other)} fails: turn the question round with --find")
        return unchanged(trail, "inconclusive" if trail.over else "absent", reproduced=False)
    verdict = ends.compare(trail)
    replay = trail.question.replay and not trail.over
    inputs = trail.inputs = replaying.steady_inputs(trail) if replay else []
    wrong_way = verdict.kind == ("falls" if trail.question.find is Find.REGRESSION else "rises")
    differ = bool(inputs) and not wrong_way and not trail.over and replaying.differ(trail, inputs)
    if verdict.kind == "throughout":
        return unchanged(
            trail,
            "throughout",
            confidence=verdict.confidence,
            method="replay" if inputs and not differ else "rates",
        )
    if differ:
        return _by_replay(trail, inputs)
    return changed(trail, search_between(trail, Rates(trail)), "rates")


# By kept inputs ---------------------------------------------------------------------------------------------


def _by_replay(trail: Trail, inputs: Sequence[Inputs]) -> Answer:
    """Search by kept inputs, then see that the rate changes at the same place.

    Inputs may begin to fail at one candidate although the failure is older: a test that begins to use its
    draws otherwise changes which inputs fail, and not how often. Then the search goes on below that place,
    with failing inputs from there.
    """
    while True:
        verdict = search_between(trail, Replays(trail, inputs))
        near = _near_side(trail, verdict)
        if near is None or trail.over or _belongs(trail, near):
            return changed(trail, verdict, "replay")
        trail.note(
            f"after {trail.label(near)} other inputs fail than before, but the failure is there already:"
            " the search goes on with failing inputs from there"
        )
        inputs = trail.inputs = _move(trail, near)
        if not inputs or not replaying.differ(trail, inputs):
            return changed(trail, search_between(trail, Rates(trail)), "rates")


def _near_side(trail: Trail, verdict: Verdict) -> int | None:
    """The neighbour of the boundary that should not fail, unless it is an end and so known already."""
    place = verdict.low if trail.question.find is Find.REGRESSION else verdict.high
    index = None if place is None else trail.low + place
    return None if index in (None, trail.other) else index


def _belongs(trail: Trail, near: int) -> bool:
    """Whether a candidate's rate is that of the end that should not fail; tried until that is clear."""
    fails, clean = trail.evidence.of(trail.failing), trail.evidence.of(trail.other)
    most = ends.PATIENCE * trail.question.trials
    while abs(ratio := side(trail.evidence.of(near), clean, fails)) < SIDE and not trail.over:
        if trail.evidence.of(near).rated >= most or trail.rate(near, ends.FIRST_BATCH) is None:
            trail.note(f"whether the rate changes right after {trail.label(near)} stayed open")
            return True
    return ratio < 0


def _move(trail: Trail, near: int) -> list[Inputs]:
    """Let the search end at a candidate that fails, and find its failing inputs."""
    if trail.question.find is Find.REGRESSION:
        trail.high = near
    else:
        trail.low = near
    return replaying.steady_inputs(trail)
