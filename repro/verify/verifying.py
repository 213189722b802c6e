"""Runs what a claim needs, side by side: harvested inputs first, then seeds, until it is shown or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from repro import ui
from repro.engines.base import Say
from repro.errors import NotReproducedError
from repro.run import Runner
from repro.subject.patching import Changes
from repro.trial.records import Outcome
from repro.verify.ahead import ahead, fresh
from repro.verify.beside import Beside, others
from repro.verify.claim import Claim, Evidence, Kind, Verdict, decide
from repro.verify.looseness import looseness
from repro.verify.sides import Side, interleaved

PICKED = 20
"""Seeds that failed, which the fixed side runs first, at most."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How much is run at a time, and when it ends.

    Args:
        times: runs of each harvested input on each side.
        block: seeds that share one process.
        budget: seconds, or None for as long as it takes.
        most: seeds of the fixed side, at most; None for as many as the claim needs.
    """

    times: int = 6
    block: int = 50
    budget: float | None = None
    most: int | None = None


@dataclass(frozen=True, kw_only=True)
class Verified:
    """All that is known in the end.

    Args:
        as_is: the failing side.
        fixed: the other.
        changed: files in which they differ.
        claim: what had to be shown.
        seen: what was run.
        verdict: what it shows.
        beside: the other tests of the file, or None where nobody asked.
        notes: sentences about what else was noticed.
    """

    as_is: Side
    fixed: Side
    changed: Changes
    claim: Claim
    seen: Evidence
    verdict: Verdict
    beside: Beside | None = None
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> bool:
        """Whether the failure is shown to be gone, and nothing else to be broken."""
        return self.verdict.kind is Kind.FIXED and not (self.beside and self.beside.broken)


@dataclass(kw_only=True)
class Verifying:
    """Compares the subject as it is with the fixed one.

    Args:
        runner: runs the trials.
        as_is: the failing side, whose failures the ledger holds.
        fixed: the other.
        changed: files in which they differ.
        claim: what has to be shown.
        pace: how much at a time.
        passes_too: whether the other tests of the file are run.
        clock: seconds, monotonic.
        say: takes lines of progress.
    """

    runner: Runner
    as_is: Side
    fixed: Side
    changed: Changes
    claim: Claim
    pace: Pace
    clock: Callable[[], float]
    say: Say
    passes_too: bool = False
    _notes: list[str] = field(default_factory=list)
    _began: float = 0.0

    def run(self) -> Verified:
        """Run it all.

        Raises:
            NotReproducedError: as it is, the subject no longer fails.
            NotReadyError, Interrupted: as `Runner.run`.
        """
        self._began = self.clock()
        seen = self._replayed()
        if any(failed for failed, _ in (each.as_is for each in seen.replayed)) or self._reproduced():
            seen = self._seeds(seen)
        seen = self._updated(seen)
        beside = self._beside()
        verdict = decide(self.claim, seen)
        self._notes += looseness(seen.as_is.values(), seen.fixed.values())
        return Verified(
            as_is=self.as_is,
            fixed=self.fixed,
            changed=self.changed,
            claim=self.claim,
            seen=seen,
            verdict=verdict,
            beside=beside,
            notes=tuple(self._notes),
        )

    # Harvested inputs ------------------------------------------------------------------------------------

    def _replayed(self) -> Evidence:
        inputs = self.as_is.harvest()
        count = ui.count(len(inputs), "failing input")
        self.say(f"{count}, {ui.count(self.pace.times, 'run')} of each as it is and fixed, in turn")
        before, after = interleaved((self.as_is, self.fixed), inputs, self.pace.times)
        if any(trial.outcome is Outcome.OTHER_INPUTS for trial in after):
            self._notes.append(
                "the fixed side draws other inputs than those that were kept: no replay of them"
            )
        seen = Evidence(
            as_is={},
            fixed={},
            picked=frozenset(self._picked()),
            replays_as_is=before,
            replays_fixed=after,
            seeds={each.identity: each.seed for each in inputs},
        )
        return self._updated(seen)

    def _picked(self) -> list[int]:
        return self.runner.ledger.failing_seeds(self.as_is.series())[:PICKED]

    def _reproduced(self) -> bool:
        """Whether, as it is, the subject fails with further seeds, where no harvested input fails again.

        Raises:
            NotReproducedError: it does not.
        """
        self._notes.append("as it is, no harvested input failed again: something beside the inputs decides")
        wanted, run = self.claim.needed, 0
        while run < wanted and not self._over():
            known = self.as_is.trials()
            seeds = fresh(known, min(self._batch(), wanted - run))
            self.as_is.run(seeds)
            if any(
                trial.outcome is Outcome.FAILED
                for seed, trial in self.as_is.trials().items()
                if seed in seeds
            ):
                return True
            run += len(seeds)
        if run >= wanted:
            raise NotReproducedError(
                f"as it is, the subject no longer fails: 0 of {run} new seeds, where {_told(self.claim)} had",
                why="something beside its code has changed since: driver, GPU, clock or load",
                next_step="repro matrix --fresh, and then this again",
            )
        self._notes.append(
            f"the time was up before the subject failed again as it is ({run} new seeds passed)"
        )
        return False

    # Seeds -----------------------------------------------------------------------------------------------

    def _seeds(self, seen: Evidence) -> Evidence:
        while batch := self._next(seen):
            before = len(seen.fixed)
            self.fixed.run(batch)
            seen = self._updated(seen)
            if len(seen.fixed) == before:
                self._notes.append("the fixed side's trials left no record")
                break
            self.say(_progress(self.claim, seen))
        return seen

    def _next(self, seen: Evidence) -> Sequence[int]:
        batch = ahead(self.claim, seen)
        if not batch:
            return ()
        if self.pace.most is not None and len(seen.fixed) >= self.pace.most:
            self._notes.append(f"--trials ended it after {ui.count(len(seen.fixed), 'seed')}")
            return ()
        if self._over():
            run = ui.count(len(seen.fixed), "seed")
            self._notes.append(f"the budget ended it after {run} of the fixed side")
            return ()
        left = (
            self._batch() if self.pace.most is None else min(self._batch(), self.pace.most - len(seen.fixed))
        )
        return batch[:left]

    def _updated(self, seen: Evidence) -> Evidence:
        return replace(seen, as_is=self.as_is.trials(), fixed=self.fixed.trials())

    def _beside(self) -> Beside | None:
        if not self.passes_too:
            return None
        return others(self.as_is, self.fixed, say=self.say, over=self._over)

    # Time ------------------------------------------------------------------------------------------------

    def _over(self) -> bool:
        return self.pace.budget is not None and self.clock() - self._began >= self.pace.budget

    def _batch(self) -> int:
        """Seeds of the next process: a block, or as many as the time that is left is good for."""
        if self.pace.budget is None:
            return self.pace.block
        left = self.pace.budget - (self.clock() - self._began)
        seconds = self.runner.ledger.seconds_per_trial().get(self.fixed.target.cell.id) or 0.001
        return max(1, min(self.pace.block, int(left / seconds)))


def _told(claim: Claim) -> str:
    return f"{claim.known.failed} of {claim.known.trials}"


def _progress(claim: Claim, seen: Evidence) -> str:
    failed = len(seen.still) + sum(seen.new_ways.values())
    return (
        f"fixed side: {ui.count(len(seen.fixed), 'seed')}, {ui.count(failed, 'failure')};"
        f" {seen.clean} of {ui.count(claim.needed, 'clean run')}"
    )
