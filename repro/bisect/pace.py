"""How long things take, learnt while they run: what a search weighs and a budget is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

_TRIAL, _START, _BUILD = 0.2, 5.0, 20.0
"""Seconds of a trial, of a process until its first trial, and of a build, before anything was measured."""
_OLD = 0.7
"""Weight of what was known against the newest measurement."""


@dataclass
class Pace:
    """Seconds of a trial, a process's start, and a candidate's build; running means."""

    trial: float = _TRIAL
    start: float = _START
    build: float = _BUILD
    runs: int = 0
    builds: int = 0

    def note_run(self, trials: int, busy: float, wall: float) -> None:
        """A process ran trials, `busy` seconds of its `wall`."""
        if trials and busy > 0.0:
            self.trial = _mean(self.trial, busy / trials, self.runs)
        self.start = _mean(self.start, max(0.0, wall - busy), self.runs)
        self.runs += 1

    def note_build(self, seconds: float) -> None:
        """A candidate was made ready."""
        self.build = _mean(self.build, seconds, self.builds)
        self.builds += 1

    def batch(self, trials: int, share: float = 0.25) -> int:
        """At least `trials`; up to ten times as many where they take at most a share of a process's start.

        A process on a GPU takes ten seconds to its first trial, and then milliseconds for each.
        """
        free = self.start / max(self.trial, 1e-6) if self.runs else 0
        return max(trials, min(10 * trials, math.floor(share * free)))

    @property
    def visit_cost(self) -> float:
        """What the first visit to a candidate costs, in trials."""
        return (self.build + self.start) / max(self.trial, 1e-6)


def _mean(old: float, new: float, known: int) -> float:
    return new if not known else _OLD * old + (1 - _OLD) * new
