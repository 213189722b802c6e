"""What it takes to call a failure fixed, and what trials of both sides show; pure functions of trials."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from repro.stats import (
    Comparison,
    PairedCounts,
    Rate,
    anytime,
    clean_runs_needed,
    compare_paired,
    rate_ruled_out,
    wilson,
)
from repro.store import Trial
from repro.trial.records import Outcome

Way = tuple[Outcome, str]
"""A way to fail: the outcome, and what the failure is recognised by."""

_NO_WAY = (Outcome.PASSED, Outcome.INFRA, Outcome.BUILD_FAILED, Outcome.OTHER_INPUTS)
"""Outcomes that are no failure of the test, or say nothing about it."""


class Kind(StrEnum):
    """What became of the failure."""

    FIXED = "fixed"
    FEWER = "fewer failures"
    NOT_FIXED = "not fixed"
    NEW_FAILURES = "new failures"
    """The inputs that failed pass; others fail that passed before."""
    FAILS_OTHERWISE = "fails otherwise"
    """No failure of the old kind, but one of a kind that was not there before."""
    NOT_SHOWN = "not shown"
    """No failure, and too few runs for the claim."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What has to be shown.

    Args:
        known: the failure rate as it is; its interval holds although sampling may have stopped early.
        needed: clean runs, beside those of inputs picked because they failed, that a claim needs: a failure
            at the lower end of the rate's interval would be missed by them with 1 - confidence at most.
        confidence: of the interval and of the claim.
    """

    known: Rate
    needed: int
    confidence: float


def claim_of(failed: int, passed: int, confidence: float) -> Claim:
    """The claim that the failure is gone.

    Raises:
        ValueError: nothing failed, so that there is no rate to hold clean runs against.
    """
    known = anytime(failed, failed + passed, confidence)
    return Claim(known=known, needed=clean_runs_needed(known.low, confidence), confidence=confidence)


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """One harvested input on both sides: (failed, run), of runs that passed or failed.

    Args:
        seed: that the input came from.
    """

    seed: int
    as_is: tuple[int, int]
    fixed: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that was run on both sides.

    Args:
        as_is: trials by seed, as the ledger has them.
        fixed: the same of the fixed side.
        picked: seeds that ran on the fixed side because they had failed.
        replays_as_is: runs of harvested inputs.
        replays_fixed: the same of the fixed side.
        seeds: by identity of a harvested input, the seed that it came from.
    """

    as_is: Mapping[int, Trial]
    fixed: Mapping[int, Trial]
    picked: frozenset[int] = frozenset()
    replays_as_is: Sequence[Trial] = ()
    replays_fixed: Sequence[Trial] = ()
    seeds: Mapping[int, int] = field(default_factory=dict)

    @property
    def replayed(self) -> list[Replayed]:
        """Harvested inputs on both sides, input by input."""
        return [
            Replayed(
                seed=seed,
                as_is=_counts(self.replays_as_is, identity),
                fixed=_counts(self.replays_fixed, identity),
            )
            for identity, seed in self.seeds.items()
        ]

    @property
    def steady(self) -> bool:
        """Whether, as it is, every harvested input fails every time."""
        rows = [each.as_is for each in self.replayed if each.as_is[1]]
        return bool(rows) and all(failed == run for failed, run in rows)

    @property
    def old_ways(self) -> frozenset[Way]:
        """Ways in which the subject fails as it is."""
        return frozenset(ways([*self.as_is.values(), *self.replays_as_is]))

    @property
    def new_ways(self) -> Counter[Way]:
        """Ways in which the fixed side alone fails, and how often."""
        found = ways([*self.fixed.values(), *self.replays_fixed])
        return Counter({way: number for way, number in found.items() if way not in self.old_ways})

    @property
    def still(self) -> list[Trial]:
        """Trials of the fixed side, replays included, that fail as before."""
        every = [*self.fixed.values(), *self.replays_fixed]
        return [trial for trial in every if trial.outcome is Outcome.FAILED and _way(trial) in self.old_ways]

    @property
    def clean(self) -> int:
        """Seeds that pass on the fixed side, beside those that were picked."""
        return sum(
            trial.outcome is Outcome.PASSED for seed, trial in self.fixed.items() if seed not in self.picked
        )

    @property
    def window(self) -> list[int]:
        """Seeds that both sides ran, from the first to the last before a gap.

        None is among them for having failed: picked seeds alone would look better the second time by chance.
        """
        return list(itertools.takewhile(self.fixed.__contains__, sorted(self.as_is)))

    @property
    def rate(self) -> tuple[int, int]:
        """(failed, run) of the fixed side, of seeds that did not run for having failed."""
        fair = {*self.window, *(self.fixed.keys() - self.as_is.keys())}
        rated = [self.fixed[seed] for seed in fair if self.fixed[seed].outcome.counts]
        return sum(trial.outcome is Outcome.FAILED for trial in rated), len(rated)

    @property
    def pairs(self) -> PairedCounts:
        """How the seeds of the window ended: as is (a) and fixed (b)."""
        counts: Counter[tuple[bool, bool]] = Counter()
        for seed in self.window:
            pair = self.as_is[seed].outcome, self.fixed[seed].outcome
            if all(outcome.counts for outcome in pair):
                counts[pair[0] is Outcome.FAILED, pair[1] is Outcome.FAILED] += 1
        return PairedCounts(
            both=counts[True, True],
            a_only=counts[True, False],
            b_only=counts[False, True],
            neither=counts[False, False],
        )


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What was shown.

    Args:
        kind: what became of the failure.
        clean: passing runs that count for the claim.
        ruled_out: failure rate that the clean runs rule out, with all above it; None after a failure.
        fixed: failure rate of the fixed side, of seeds that did not run for having failed.
        comparison: of the two sides' failure rates, over seeds that both ran.
    """

    kind: Kind
    clean: int
    ruled_out: float | None
    fixed: Rate
    comparison: Comparison


def decide(claim: Claim, seen: Evidence) -> Verdict:
    """The verdict on what was seen so far."""
    comparison = compare_paired(seen.pairs, claim.confidence)
    kind = _kind(claim, seen, comparison)
    fails = bool(seen.still or seen.new_ways)
    return Verdict(
        kind=kind,
        clean=seen.clean,
        ruled_out=None if fails else rate_ruled_out(seen.clean, claim.confidence),
        fixed=wilson(*seen.rate, claim.confidence),
        comparison=comparison,
    )


def _kind(claim: Claim, seen: Evidence, comparison: Comparison) -> Kind:
    if seen.still:
        if _moved(seen):
            return Kind.NEW_FAILURES
        less = seen.pairs.a_only > seen.pairs.b_only and comparison.p_value <= 1 - claim.confidence
        return Kind.FEWER if less else Kind.NOT_FIXED
    if seen.new_ways:
        return Kind.FAILS_OTHERWISE
    return Kind.FIXED if seen.clean >= claim.needed else Kind.NOT_SHOWN


def _moved(seen: Evidence) -> bool:
    """Whether the inputs decide, those that failed pass every time, and seeds fail that had passed."""
    failing = [seed for seed, trial in seen.as_is.items() if trial.outcome is Outcome.FAILED]
    again = [seen.fixed[seed] for seed in failing if seed in seen.fixed]
    return seen.steady and all(
        trial.outcome is Outcome.PASSED for trial in [*again, *seen.replays_fixed] if trial.outcome.counts
    )


def ways(trials: Iterable[Trial]) -> Counter[Way]:
    """How often each way to fail came."""
    return Counter(_way(trial) for trial in trials if trial.outcome not in _NO_WAY)


def _way(trial: Trial) -> Way:
    return trial.outcome, trial.signature_key or ""


def _counts(trials: Iterable[Trial], identity: int) -> tuple[int, int]:
    rated = [trial for trial in trials if trial.seed == identity and trial.outcome.counts]
    return sum(trial.outcome is Outcome.FAILED for trial in rated), len(rated)
