"""Which seeds the fixed side should run next: a pure function of what was seen."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from repro.trial.records import Outcome
from repro.verify.claim import Claim, Evidence

ENOUGH = 5
"""Picked seeds that all fail again: no further comparison is needed."""
OWN_SEEDS = 2**31
"""From here on seeds belong to the candidates of searches."""


def ahead(claim: Claim, seen: Evidence) -> list[int]:
    """Seeds that the fixed side should run next, the most telling first; none where enough is known.

    Seeds that failed come first: where they fail again, it is known at once. Then those that the ledger holds
    in their order, which makes pairs; then new ones.
    """
    picked = sorted(seed for seed in seen.picked if seed not in seen.fixed)
    if seen.new_ways or _hopeless(seen, picked):
        return []
    if picked:
        return picked
    known = sorted(seed for seed in seen.as_is if seed not in seen.fixed)
    if seen.still:
        return known
    missing = claim.needed - seen.clean
    if missing <= 0 or len(seen.fixed) > 3 * claim.needed + len(seen.as_is):
        return []
    return [*known, *fresh({**seen.as_is, **seen.fixed}, missing)][:missing]


def fresh(known: Iterable[int], number: int) -> list[int]:
    """Seeds that nobody ran, beyond those that the matrix ran."""
    first = max((seed + 1 for seed in known if seed < OWN_SEEDS), default=0)
    return list(itertools.islice(itertools.count(first), number))


def _hopeless(seen: Evidence, picked: Sequence[int]) -> bool:
    """Whether all that failed fails again: harvested inputs every time, or all of the picked seeds."""
    rows = [each for each in seen.replayed if each.fixed[1]]
    if seen.steady and rows and all(failed == run for failed, run in (each.fixed for each in rows)):
        return True
    again = [seen.fixed[seed] for seed in seen.picked if seed in seen.fixed]
    return not picked and len(again) >= ENOUGH and all(trial.outcome is Outcome.FAILED for trial in again)
