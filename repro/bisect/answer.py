"""What a search found, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from repro.bisect.lines import Candidate
from repro.bisect.tryout import Counts, Finding
from repro.search import Kind, RateEstimate


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What was seen of one candidate.

    Args:
        index: its place on the line.
        counts: trials with seeds of their own.
        replayed: (failed, run) trials of kept inputs.
        elements: of each replayed failing input, which elements differed: equal texts for equal ones.
    """

    index: int
    counts: Counts
    replayed: tuple[int, int] = (0, 0)
    elements: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Belief:
    """How likely the change is after candidate `low` and not after `high`."""

    low: int
    high: int
    probability: float


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The end of a search along one line; places are indexes of its candidates.

    Args:
        axis: what was searched along.
        candidates: all of them, oldest first.
        kind: see `repro.search.Verdict`.
        first_bad: the first candidate after the change, whatever its direction; None below the asked
            confidence, and where candidates that cannot be tested stand before it.
        low, high: the change is after `low` and not after `high`; None where there is none.
        confidence: probability of the above.
        rate_before, rate_after: failure rates of trials with seeds of their own, on either side.
        method: `replay` where kept inputs decided, else `rates`.
        trials: that were run for this answer.
        builds: candidates that were prepared for it.
        seen: what was tried, in order of the line.
        findings: candidates that could not be tested.
        belief: the posterior that the search ended with, where it is not negligible; empty without a search.
        oldest, newest: the outermost candidates that can be tested.
        reproduced: whether the end that has to fail did.
        final: whether more trials would add nothing: False where a budget or a limit ended it.
        notes: what a reader must know, a sentence each.
    """

    axis: str
    candidates: Sequence[Candidate]
    kind: Kind
    first_bad: int | None
    low: int | None
    high: int | None
    confidence: float
    rate_before: RateEstimate
    rate_after: RateEstimate
    method: str
    trials: int
    builds: int
    seen: Sequence[Seen]
    findings: Sequence[Finding]
    oldest: int
    newest: int
    belief: Sequence[Belief] = ()
    reproduced: bool = True
    final: bool = True
    notes: Sequence[str] = ()

    @property
    def decided(self) -> bool:
        """Whether this is the best answer there is: a name, or a range that cannot be narrowed."""
        if self.low is None or self.high is None:
            return self.kind in ("throughout", "absent")
        untestable = {finding.index for finding in self.findings}
        return self.first_bad is not None or untestable >= set(range(self.low + 1, self.high))

    def name(self, index: int | None) -> str | None:
        """A candidate's version or full commit id."""
        return None if index is None else self.candidates[index].name

    def label(self, index: int) -> str:
        """A candidate as a person reads it."""
        return self.candidates[index].label

    def to_json(self) -> dict[str, Any]:
        """The keys of the contract first, then what explains them."""
        return {
            "kind": self.kind,
            "first_bad": self.name(self.first_bad),
            "low": self.name(self.low),
            "high": self.name(self.high),
            "confidence": round(self.confidence, 6),
            "rate_before": rate_json(self.rate_before),
            "rate_after": rate_json(self.rate_after),
            "trials": self.trials,
            "builds": self.builds,
            "skipped": [self.name(finding.index) for finding in self.findings],
            "axis": self.axis,
            "method": self.method,
            "reproduced": self.reproduced,
            "final": self.final,
            "candidates": len(self.candidates),
            "oldest": self.name(self.oldest),
            "newest": self.name(self.newest),
            "tried": [self._seen_json(seen) for seen in self.seen],
            "belief": [
                {
                    "low": self.name(each.low),
                    "high": self.name(each.high),
                    "probability": round(each.probability, 6),
                }
                for each in self.belief
            ],
            "findings": [self._finding_json(finding) for finding in self.findings],
            "notes": list(self.notes),
        }

    def _seen_json(self, seen: Seen) -> dict[str, Any]:
        return {
            "candidate": self.name(seen.index),
            "label": self.label(seen.index),
            "failed": seen.counts.failed,
            "trials": seen.counts.rated,
            "others": {outcome.value: number for outcome, number in sorted(seen.counts.others.items())},
            "replayed": {"failed": seen.replayed[0], "trials": seen.replayed[1]},
        }

    def _finding_json(self, finding: Finding) -> dict[str, Any]:
        return {
            "candidate": self.name(finding.index),
            "label": self.label(finding.index),
            "outcome": finding.outcome.value,
            "message": finding.message,
        }


def rate_json(rate: RateEstimate) -> dict[str, Any]:
    """A rate as every command prints it."""
    return {
        "failed": rate.failed,
        "trials": rate.trials,
        "rate": rate.rate,
        "low": rate.low,
        "high": rate.high,
    }
