"""What becomes of a smaller case: at once where the failure replays, else by a sequential test."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from repro.bisect.kept import Inputs
from repro.minimize.blocks import Blocks, only, outcomes
from repro.minimize.case import Case, Parameter
from repro.minimize.often import AsOften
from repro.minimize.shrink import Verdict
from repro.trial.records import Event

CASE_SECONDS = 120.0
"""Time that one case may take, at most."""
BATCH = 50
"""Trials of the first process, where rates decide; each further one doubles what there is."""
MOST = 1000
"""Trials of one case, where rates decide: one that is undecided by then is what is likelier."""


class TimeIsUp(Exception):  # noqa: N818
    """The budget is spent."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The failure of the smallest case so far, as its process recorded it.

    Args:
        seed: of its trial.
        inputs: what it drew, made small; None where only the seed is known.
        record: the `reduced` event.
    """

    seed: int
    inputs: Inputs | None
    record: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What became of one case.

    Args:
        verdict: whether it fails as the first one did.
        trials: that were run for it.
        how: in what way the failure came about, or why it is gone, for a person.
    """

    verdict: Verdict
    trials: int
    how: str


class Trying(Protocol):
    """One way to find out."""

    key: str
    failure: Failure | None

    @property
    def by(self) -> str:
        """`inputs`, `seeds` or `rate`: what stands for the failure."""

    def attempt(self, case: Case) -> Tried:
        """Find out what becomes of a case.

        Raises:
            TimeIsUp: the budget is spent.
        """

    def again(self, case: Case, times: int) -> tuple[int, int]:
        """(failed, run) of the case once more, in a fresh process."""


@dataclass(kw_only=True)
class ByReplay:
    """A failure that inputs or a seed alone decide: a case is kept if any trial of it fails every time.

    Args:
        blocks: runs trials.
        parameters: what the case is made of.
        key: key of the signature that has to stay.
        manners: in which compared values may differ; none before the first failure.
        seeds: fresh seeds that each case gets, beside the inputs that failed before, cut to its size.
        record: whether draws can be recorded without the failure going away.
        next_seed: the first fresh seed.
        confirm: further runs of a failure, all of which have to fail.
        failure: of the smallest case so far.
    """

    blocks: Blocks
    parameters: Sequence[Parameter]
    key: str
    seeds: int
    record: bool
    next_seed: int
    confirm: int = 2
    manners: tuple[str, ...] = ()
    failure: Failure | None = None

    @property
    def by(self) -> str:
        """What stands for the failure."""
        return "inputs" if self.failure is not None and self.failure.inputs is not None else "seeds"

    def attempt(self, case: Case) -> Tried:
        """One process: inputs that are known, fitted, then fresh seeds; the first failure is made small."""
        if self.blocks.left <= 0:
            raise TimeIsUp
        inputs = self.failure.inputs if self.failure is not None else None
        seeds = self._seeds(inputs)
        before = self.blocks.trials
        events, folder = self.blocks.run(seeds, {**case.request(self.parameters), **self._reduce()}, inputs)
        trials = self.blocks.trials - before
        reduced = only(events, Event.REDUCED)
        if reduced is None:
            how = _why_gone(events, self.key, self.manners)
            return Tried(verdict=Verdict.GONE, trials=trials, how=how)
        if reduced.get("same"):
            return Tried(verdict=Verdict.SAME, trials=trials, how="the same failure to the last digit")
        taken = self.blocks.take(folder, reduced)
        self.failure = Failure(seed=int(reduced["seed"]), inputs=taken, record=reduced)
        fresh = inputs is None or reduced["seed"] in seeds[1:]
        how = f"seed {reduced['seed']}" if fresh else "the inputs that failed before, cut to size"
        return Tried(verdict=Verdict.STAYS, trials=trials, how=how)

    def again(self, case: Case, times: int) -> tuple[int, int]:
        """The smallest case's own inputs, or its seed, in one fresh process."""
        assert self.failure is not None
        inputs = self.failure.inputs
        seed = self.failure.seed if inputs is None else inputs.identity
        events, _ = self.blocks.run([seed] * times, case.request(self.parameters), inputs)
        failed, passed, _ = outcomes(events, self.key, self.manners)
        return failed, failed + passed

    def _seeds(self, inputs: Inputs | None) -> list[int]:
        """The known failure first, then seeds that no case had yet."""
        fresh = range(self.next_seed, self.next_seed + self.seeds)
        self.next_seed = fresh.stop
        known = self.failure.seed if self.failure is not None else fresh.start
        return [inputs.identity if inputs is not None else known, *fresh]

    def _reduce(self) -> dict[str, object]:
        known = self.failure.record.get("digest", "") if self.failure is not None else ""
        return {
            "reduce": {
                "key": self.key,
                "record": self.record,
                "confirm": self.confirm,
                "known": known,
                "manners": list(self.manners),
                "seconds": min(self.blocks.left, CASE_SECONDS),
            }
        }


@dataclass(kw_only=True)
class ByRate:
    """A failure that comes by chance: a case is kept if it fails as often as the first one.

    Args:
        blocks: runs trials.
        parameters: what the case is made of.
        key: key of the signature that has to stay.
        manners: in which compared values may differ.
        often: tells one that does.
        next_seed: the first fresh seed.
    """

    blocks: Blocks
    parameters: Sequence[Parameter]
    key: str
    often: AsOften
    next_seed: int
    manners: tuple[str, ...] = ()
    failure: Failure | None = None

    @property
    def by(self) -> str:
        """What stands for the failure."""
        return "rate"

    def attempt(self, case: Case) -> Tried:
        """Trials until it is clear what the case is."""
        failed = passed = strange = 0
        kept: bool | None = None
        while kept is None and failed + passed + strange < MOST:
            if self.blocks.left <= 0:
                raise TimeIsUp
            done = failed + passed + strange
            more = self._batch(case, min(max(BATCH, done), MOST - done))
            failed, passed, strange = failed + more[0], passed + more[1], strange + more[2]
            kept = False if strange > failed + passed else self.often.decide(failed, passed)
        if kept is None:
            kept = self.often.log_odds(failed, passed) > 0.0
        verdict = Verdict.STAYS if kept else Verdict.GONE
        how = f"{failed} of {failed + passed} failed" + (f", {strange} otherwise" if strange else "")
        return Tried(verdict=verdict, trials=failed + passed + strange, how=how)

    def again(self, case: Case, times: int) -> tuple[int, int]:
        """Fresh seeds."""
        failed, passed, _ = self._batch(case, times)
        return failed, failed + passed

    def _batch(self, case: Case, size: int) -> tuple[int, int, int]:
        seeds = range(self.next_seed, self.next_seed + size)
        self.next_seed = seeds.stop
        events, _ = self.blocks.run(list(seeds), case.request(self.parameters))
        failed, passed, others = outcomes(events, self.key, self.manners)
        died = 1 if not failed + passed + others.total() else 0
        return failed, passed, others.total() + died


def _why_gone(events: Sequence[Mapping[str, Any]], key: str, known: Collection[str]) -> str:
    """In a few words, what came in place of the failure."""
    missing = only(events, Event.MISSING)
    if missing is not None:
        return f"the test is not there: {missing.get('reason')}"
    failed, passed, others = outcomes(events, key, known)
    told = [f"{failed} failed, not every time"] if failed else []
    told += [f"{passed} passed"] if passed else []
    told += [f"{number} {outcome}" for outcome, number in sorted(others.items())]
    return ", ".join(told) or "no trial ended"
