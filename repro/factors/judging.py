"""What paired trials say of each factor. Pure: from recorded trials to a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from repro import ui
from repro.factors.known import Factor
from repro.stats import PairedCounts, Rate, compare_paired, fisher, judge, wilson
from repro.store import Trial
from repro.trial.records import Outcome

FALSE_DISCOVERIES = 0.05
CHANCE = 0.05
"""Of calling a difference between two processes an effect, where it has to come a second time."""


class Verdict(StrEnum):
    """What a factor does."""

    MATTERS = "changes the rate"
    ONCE = "changed the rate in one process, and was not seen to in a second"
    """Processes differ by themselves: the trials of each share what decides."""
    NUMBERS = "changes numbers, and not the rate as far as seen"
    ITSELF = "changes no more than a second run of the same does"
    NOTHING = "changes no number"
    UNSEEN = "changes no outcome as far as seen"
    """The trials compared nothing that was measured."""
    UNTRIED = "not tried"


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """The same seeds without and with a factor.

    Args:
        counts: `a` without, `b` with it.
        measured: seeds of which both trials measured a comparison.
        changed: seeds of which some measured number differs.
        worst: largest error in units of its tolerance over all seeds, without and with it; None if unknown.
        others: trials with it that neither passed nor failed as looked for.
    """

    counts: PairedCounts
    measured: int
    changed: int
    worst: tuple[float | None, float | None]
    others: int

    @property
    def differ(self) -> bool:
        """Whether any seed has other numbers, or another outcome."""
        return bool(self.changed or self.counts.a_only or self.counts.b_only)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One factor, judged.

    Args:
        factor: what was varied.
        verdict: what it does.
        pairs: what it rests on; None where it was not tried.
        without, with_it: rates over the paired seeds.
        p_value: of the exact McNemar test.
        q_value: the same with the rate of false discoveries controlled over all factors.
        reason: why it was not tried, or "".
        again: the same seeds run twice without any factor; None where no number changed.
        second: other seeds without and with it, in new processes; None where the first were enough.
    """

    factor: Factor
    verdict: Verdict
    pairs: Pairs | None = None
    without: Rate | None = None
    with_it: Rate | None = None
    p_value: float | None = None
    q_value: float | None = None
    reason: str = ""
    again: Pairs | None = None
    second: Pairs | None = None

    def having_second(self, second: Pairs) -> Effect:
        """The same, held against a second pair of processes: an effect shows in each."""
        borne_out = _rise(second) * _rise(self.pairs) > 0 and compare_paired(second.counts).p_value <= CHANCE
        return replace(self, second=second, verdict=self.verdict if borne_out else Verdict.ONCE)


def pair(without: Iterable[Trial], with_it: Iterable[Trial]) -> Pairs:
    """Hold trials with the same seeds against each other."""
    a, b = ({trial.seed: trial for trial in trials} for trials in (without, with_it))
    both = [seed for seed in a if seed in b and a[seed].outcome.counts and b[seed].outcome.counts]
    failed = {
        (one, other): sum((_failed(a[seed]), _failed(b[seed])) == (one, other) for seed in both)
        for one in (True, False)
        for other in (True, False)
    }
    measured = [seed for seed in both if a[seed].comparisons and b[seed].comparisons]
    return Pairs(
        counts=PairedCounts(
            both=failed[True, True],
            a_only=failed[True, False],
            b_only=failed[False, True],
            neither=failed[False, False],
        ),
        measured=len(measured),
        changed=sum(_numbers(a[seed]) != _numbers(b[seed]) for seed in measured),
        worst=(_worst(a[seed] for seed in both), _worst(b[seed] for seed in both)),
        others=sum(not trial.outcome.counts for trial in b.values()),
    )


def judge_factors(
    found: Mapping[Factor, Pairs], untried: Mapping[Factor, str], again: Pairs | None = None
) -> list[Effect]:
    """A verdict for each factor; false discoveries are controlled over those that were tried.

    Args:
        found: the seeds without and with each factor.
        untried: why others were not tried.
        again: the seeds run twice without any: what the test changes by itself.
    """
    tested = {factor: pairs for factor, pairs in found.items() if pairs.counts.n}
    judged = judge(
        {factor: compare_paired(pairs.counts) for factor, pairs in tested.items()}, FALSE_DISCOVERIES
    )
    effects = [
        _effect(factor, pairs, judged[factor].comparison.p_value, judged[factor].q_value, again)
        for factor, pairs in tested.items()
    ]
    empty = {factor: _why_empty(pairs) for factor, pairs in found.items() if not pairs.counts.n}
    return effects + [
        Effect(factor=factor, verdict=Verdict.UNTRIED, reason=reason)
        for factor, reason in {**empty, **untried}.items()
    ]


def _effect(factor: Factor, pairs: Pairs, p_value: float, q_value: float, again: Pairs | None) -> Effect:
    counts = pairs.counts
    return Effect(
        factor=factor,
        verdict=_verdict(pairs, q_value, again),
        pairs=pairs,
        without=wilson(counts.both + counts.a_only, counts.n),
        with_it=wilson(counts.both + counts.b_only, counts.n),
        p_value=p_value,
        q_value=q_value,
        again=again,
    )


def _verdict(pairs: Pairs, q_value: float, again: Pairs | None) -> Verdict:
    if q_value <= FALSE_DISCOVERIES:
        return Verdict.MATTERS
    if not pairs.measured:
        return Verdict.UNSEEN
    if not pairs.changed:
        return Verdict.NOTHING
    return Verdict.NUMBERS if again is None or _changes_more(pairs, again) else Verdict.ITSELF


def _changes_more(pairs: Pairs, again: Pairs) -> bool:
    """Whether more seeds change their numbers than do without the factor, beyond chance."""
    chance = fisher(pairs.changed, pairs.measured, again.changed, again.measured)
    more = pairs.changed * again.measured > again.changed * pairs.measured
    return not again.changed or (more and chance <= FALSE_DISCOVERIES)


def _why_empty(pairs: Pairs) -> str:
    if not pairs.others:
        return "no pair ran"
    return f"{ui.count(pairs.others, 'trial')} neither passed nor failed as looked for"


def _rise(pairs: Pairs | None) -> int:
    """How many more seeds fail with the factor."""
    return pairs.counts.b_only - pairs.counts.a_only if pairs is not None else 0


def _failed(trial: Trial) -> bool:
    return trial.outcome is Outcome.FAILED


def _numbers(trial: Trial) -> list[Any]:
    """What both kinds of trial have of each comparison: the ledger keeps elements of failures alone."""
    names = ("index", "item", "max_abs", "max_rel", "mismatched")
    return [[comparison.get(name) for name in names] for comparison in trial.comparisons]


def _worst(trials: Iterable[Trial]) -> float | None:
    ratios = [
        float(comparison["ratio"])
        for trial in trials
        for comparison in trial.comparisons
        if isinstance(comparison.get("ratio"), int | float)
    ]
    return max(ratios, default=None)


def to_json(effects: Sequence[Effect]) -> list[dict[str, Any]]:
    """All of it as plain values."""
    return [_plain(effect) for effect in effects]


def _plain(effect: Effect) -> dict[str, Any]:
    told: dict[str, Any] = {
        "factor": effect.factor.name,
        "env": dict(effect.factor.env),
        "what": effect.factor.what,
        "verdict": effect.verdict.name.lower(),
        "reason": effect.reason,
    }
    if effect.pairs is None or effect.without is None or effect.with_it is None:
        return told
    return {
        **told,
        "without": effect.without.to_json(),
        "with": effect.with_it.to_json(),
        "pairs": _plain_counts(effect.pairs.counts),
        "second_pairs": effect.second and _plain_counts(effect.second.counts),
        "p_value": effect.p_value,
        "q_value": effect.q_value,
        "measured": effect.pairs.measured,
        "changed": effect.pairs.changed,
        "changed_again": effect.again
        and {"changed": effect.again.changed, "measured": effect.again.measured},
        "worst_ratio": {"without": effect.pairs.worst[0], "with": effect.pairs.worst[1]},
        "others": effect.pairs.others,
    }


def _plain_counts(counts: PairedCounts) -> dict[str, int]:
    return {
        "both": counts.both,
        "without_only": counts.a_only,
        "with_only": counts.b_only,
        "neither": counts.neither,
    }
