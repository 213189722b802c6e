"""Two ways to try a candidate: trials with seeds of their own, and the same failing inputs everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from repro.bisect import replaying
from repro.bisect.kept import Inputs
from repro.bisect.replaying import ROUNDS
from repro.bisect.trail import Trail
from repro.trial.records import Outcome


class Method(Protocol):
    """A way to try a candidate, for counts that the search can take in."""

    name: str
    weight: int
    """Trials that one run is worth: the search counts it that many times."""

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
    weight: int = 1

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
    """The same failing inputs everywhere.

    They failed in every one of `ROUNDS` runs where they were found, so a further run of one tells as much.
    """

    trail: Trail
    inputs: Sequence[Inputs]
    name: str = "replay"
    weight: int = ROUNDS

    def known(self) -> Mapping[int, tuple[int, int]]:
        """See `Method.known`."""
        wanted = replaying.identities(self.inputs)
        found = {index: self.trail.evidence.replayed(index, wanted) for index in self.trail.evidence.replays}
        return {index: self._weighed(failed, run) for index, (failed, run) in found.items() if run}

    def try_(self, index: int, trials: int) -> tuple[int, int] | None:
        """See `Method.try_`."""
        done = self.trail.replay(index, self.inputs, self.batch(trials) // len(self.inputs))
        rated = [trial for trial in done or () if trial.outcome.counts]
        failed = sum(trial.outcome is Outcome.FAILED for trial in rated)
        return self._weighed(failed, len(rated)) if rated else None

    def batch(self, trials: int) -> int:
        """See `Method.batch`."""
        rounds = math.ceil(trials / (len(self.inputs) * self.weight))
        return max(1, rounds) * len(self.inputs)

    def _weighed(self, failed: int, run: int) -> tuple[int, int]:
        return failed * self.weight, (run - failed) * self.weight
