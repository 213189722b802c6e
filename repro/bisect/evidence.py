"""All that a search has seen so far, candidate by candidate."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import lgamma

from repro.bisect.answer import Seen
from repro.bisect.tryout import Counts, Finding
from repro.search import RateEstimate, estimate_rate
from repro.store import Trial
from repro.trial.records import Outcome


@dataclass
class Evidence:
    """Counts of trials with seeds of their own, replays of kept inputs, and what could not be tested."""

    counts: dict[int, Counts] = field(default_factory=dict)
    replays: dict[int, list[Trial]] = field(default_factory=dict)
    findings: dict[int, Finding] = field(default_factory=dict)

    def add(self, index: int, counts: Counts) -> None:
        """Take in trials with seeds of their own."""
        if counts.rated or counts.others:
            self.counts[index] = self.counts.get(index, Counts()) + counts

    def add_replays(self, index: int, trials: Iterable[Trial]) -> None:
        """Take in replays."""
        self.replays.setdefault(index, []).extend(trials)

    def of(self, index: int) -> Counts:
        """Trials of one candidate."""
        return self.counts.get(index, Counts())

    def pooled(self, first: int, last: int) -> Counts:
        """Trials of all candidates from `first` to `last`."""
        inside = [counts for index, counts in self.counts.items() if first <= index <= last]
        return sum(inside, Counts())

    def rate(self, first: int, last: int, confidence: float) -> RateEstimate:
        """The failure rate of candidates from `first` to `last`."""
        pooled = self.pooled(first, last)
        return estimate_rate(pooled.failed, pooled.passed, confidence)

    def replayed(self, index: int, identities: Sequence[int]) -> tuple[int, int]:
        """(failed, run) replays of some inputs at a candidate."""
        wanted = set(identities)
        trials = [trial for trial in self.replays.get(index, ()) if trial.seed in wanted]
        rated = [trial for trial in trials if trial.outcome.counts]
        return sum(trial.outcome is Outcome.FAILED for trial in rated), len(rated)

    def steady_inputs(self, index: int) -> list[int]:
        """Inputs that failed each time they were replayed at a candidate."""
        failed: Counter[int] = Counter()
        run: Counter[int] = Counter()
        for trial in self.replays.get(index, ()):
            run[trial.seed] += 1
            failed[trial.seed] += trial.outcome is Outcome.FAILED
        return [identity for identity in run if failed[identity] == run[identity]]

    def seen(self) -> list[Seen]:
        """Every candidate that was tried, in order."""
        return [
            Seen(
                index=index,
                counts=self.of(index),
                replayed=self.replayed(index, [trial.seed for trial in self.replays.get(index, ())]),
                elements=elements(self.replays.get(index, ())),
            )
            for index in sorted({*self.counts, *self.replays})
        ]


def elements(trials: Iterable[Trial]) -> dict[int, str]:
    """Which elements differed when each input failed, as text to compare: equal for equal elements."""
    return {
        trial.seed: json.dumps([_place(one) for one in trial.comparisons if one.get("mismatched")])
        for trial in trials
        if trial.outcome is Outcome.FAILED
    }


def _place(comparison: Mapping[str, object]) -> list[object]:
    return [comparison.get(name) for name in ("index", "item", "mismatched", "mismatched_at")]


def side(fresh: Counts, before: Counts, after: Counts) -> float:
    """How much likelier trials are beside those after a change than beside those before it.

    The natural logarithm of the ratio of two predictions, each a Beta(1/2, 1/2) prior updated with the
    trials of its side (the Beta-binomial predictive distribution).
    """
    return _predicted(fresh, after) - _predicted(fresh, before)


def _predicted(fresh: Counts, known: Counts) -> float:
    a, b = known.failed + 0.5, known.passed + 0.5
    return _log_beta(a + fresh.failed, b + fresh.passed) - _log_beta(a, b)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
