"""Two ways to try a candidate: trials with seeds of their own, and the same failing inputs everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from repro.bisect import replaying
from repro.bisect.kept import Inputs
from repro.bisect.trail import Trail
from repro.bisect.tryout import rounds_for
from repro.trial.records import Outcome


class Method(Protocol):
    """A way to try a candidate, for counts that the search can take in."""

    name: str

    def known(self) -> Mapping[int, tuple[int, int]]:
        """(failed, passed) of the candidates that were tried this way."""

    def try_(self, index: int, trials: int) -> tuple[int, int] | None:
        """Run more; (failed, passed), or None where the candidate cannot be tested."""

    def batch(self, trials: int) -> int:
        """How many trials one process runs when this many are asked for."""


@dataclass
class Rates:
    """Each trial has a seed of its own."""

    trail: Trail
    name: str = "rates"

    def known(self) -> Mapping[int, tuple[int, int]]:
        """See `Method.known`."""
        return {
            index: (counts.failed, counts.passed)
            for index, counts in self.trail.evidence.counts.items()
            if counts.rated
        }

    def try_(self, index: int, trials: int) -> tuple[int, int] | None:
        """See `Method.try_`."""
        counts = self.trail.rate(index, trials)
        return None if counts is None else (counts.failed, counts.passed)

    def batch(self, trials: int) -> int:
        """See `Method.batch`."""
        return self.trail.tryout.pace.batch(trials)


@dataclass
class Replays:
    """The same failing inputs everywhere."""

    trail: Trail
    inputs: Sequence[Inputs]
    name: str = "replay"

    def known(self) -> Mapping[int, tuple[int, int]]:
        """See `Method.known`."""
        wanted = replaying.identities(self.inputs)
        found = {index: self.trail.evidence.replayed(index, wanted) for index in self.trail.evidence.replays}
        return {index: (failed, run - failed) for index, (failed, run) in found.items() if run}

    def try_(self, index: int, trials: int) -> tuple[int, int] | None:
        """See `Method.try_`."""
        done = self.trail.replay(index, self.inputs, rounds_for(trials, self.inputs))
        rated = [trial for trial in done or () if trial.outcome.counts]
        failed = sum(trial.outcome is Outcome.FAILED for trial in rated)
        return (failed, len(rated) - failed) if rated else None

    def batch(self, trials: int) -> int:
        """See `Method.batch`."""
        return rounds_for(trials, self.inputs) * len(self.inputs)
