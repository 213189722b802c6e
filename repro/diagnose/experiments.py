"""What is run for a diagnosis, in the order in which it tells most, as long as the budget lasts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from repro.adapting import observe
from repro.diagnose.evidence import Evidence
from repro.diagnose.shots import ASIDE, Range, Shot
from repro.engines.base import Say
from repro.errors import ReproError
from repro.factors import Factor, Varying, Verdict, known_factors
from repro.factors.known import NAMED, Host, chosen
from repro.inspect import Probe, Wanted, probe
from repro.run import Runner
from repro.store import Ledger
from repro.trial.request import ProbeRequest
from repro.ui import count

SEEDS = 4
"""Failing seeds that are looked into."""
REPEATS = 5
PROBES = 3
WATCHED = 100
ENOUGH = 8
"""Failures expected without an intervention, for its effect to show."""
FIRSTS = 6
"""Runs of an intervention where only the first trial of a process fails: each needs one of its own."""
MOST = 240
"""Runs of an intervention, at most."""
INTERVENTIONS = ("first-config", "float64", "zero-fill", "poison")
"""Poison last: an index that it makes may end the process."""
FRESH = ("first-config", "zero-fill", "poison")
"""Interventions where each run needs a process."""
ORDERING = ("one-thread", "deterministic")
"""Interventions that matter where the same inputs give different numbers."""
VARIED = 12
"""Failing and passing seeds that are run with each environment variable."""


@dataclass(kw_only=True)
class Experiments:
    """Runs experiments and keeps what they gave.

    Args:
        range: where shots are fired.
        evidence: what the ledger says; fields of experiments are empty.
        env: further environment variables that matrix.yaml varies, each with its values.
        adapter: file that knows the operator, or None.
        deadline: by `clock`, when no further experiment begins.
        clock: seconds, monotonic.
        say: takes lines of progress.
    """

    range: Range
    evidence: Evidence
    env: Sequence[tuple[str, str]]
    adapter: Path | None
    deadline: float
    clock: Callable[[], float]
    say: Say
    done: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def run(self) -> Evidence:
        """Run them all.

        Raises:
            Interrupted, NotReadyError: as `Runner.run`.
        """
        self._repeat()
        self._watch()
        self._probe()
        self._adapt()
        self._switch()
        self._vary()
        return self._with(missing=self.missing)

    # Single experiments ------------------------------------------------------------------------------------

    def _repeat(self) -> None:
        """The same seeds again: alone in a process, and each first in a process."""
        failing = self.evidence.failing
        if not self._time_for("repeat", f"{count(len(failing), 'failing seed')} again"):
            return
        same = {seed: self.range.fire([seed] * REPEATS) for seed in failing[:2]}
        fresh = self.range.fire([*failing[:2], *self.evidence.passing[:1]], fresh=True)
        self._with(same=same, fresh=fresh)
        self._told("repeat", [shot for shots in same.values() for shot in shots] + list(fresh))

    def _watch(self) -> None:
        """What failing and passing trials draw."""
        failing = [trial.seed for trial in self.evidence.recorded[:VARIED]]
        seeds = [*failing, *self.evidence.passing][:WATCHED]
        if self._time_for("draws", f"{count(len(seeds), 'trial')}, watched as they draw"):
            self._with(watched=self.range.fire(seeds, watch=True))
            self._told("draws", self.evidence.watched)

    def _probe(self) -> None:
        """Every step of failing trials, their precision and their derivatives."""
        found: dict[int, Probe] = {}
        for seed in self.evidence.failing[:PROBES] if self.evidence.compares else ():
            if not self._time_for("probe", f"a look into seed {seed}"):
                break
            try:
                wanted = Wanted(seed=seed, gpu=self.range.gpu)
                found[seed] = probe(self.range.runner, self.range.target, self.range.prepared, wanted)
            except ReproError as error:
                self.missing["probe"] = error.what
        self._with(probes=found, control=self._control() if found else None)
        self.done.append(f"probe: {count(len(found), 'failing trial')}")

    def _control(self) -> Probe | None:
        """The steps of a passing trial: what is odd there, too, does no harm."""
        at, passing = self.range, self.evidence.passing
        if not passing or self.clock() >= self.deadline:
            return None
        try:
            wanted = Wanted(seed=passing[0], gpu=at.gpu, options=ProbeRequest(derivatives=False, perturbed=0))
            return probe(at.runner, at.target, at.prepared, wanted)
        except ReproError:
            return None

    def _adapt(self) -> None:
        """What the operator's adapter knows of jumps near the failing elements."""
        seeds, adapter = self.evidence.failing[:PROBES], self.adapter
        if adapter is None or not self.evidence.compares:
            return
        if not self._time_for("adapter", f"{count(len(seeds), 'failing seed')}, with the operator's adapter"):
            return
        at = self.range
        found = observe(at.runner, at.target, at.prepared, seeds, adapter, gpu=at.gpu)
        self._with(jumps=found.jumps, predicted_rate=found.predicted_rate)
        self.done.append(f"adapter: {count(len(found.jumps), 'failing element')} near jumps")
        self.done += [f"adapter: {trouble}" for trouble in found.troubles]

    def _switch(self) -> None:
        """The same seeds with one thing switched at a time."""
        seeds, fresh = self._baseline_seeds()
        varies = bool(self.evidence.varying) and not self.evidence.first_only
        names = [*(ORDERING if varies else ()), *INTERVENTIONS]
        if not seeds or not self._time_for(
            "interventions", f"{count(len(seeds), 'run')} with each of {', '.join(names)}"
        ):
            return
        if fresh:
            found = {name: self.range.fire(seeds, fresh=True, intervention=name) for name in ("", *FRESH)}
        else:
            found = self.range.fire_series(dict.fromkeys(("", *names), seeds))
        self._with(baseline=found.pop(""), switched=found)
        self._told("as it is", self.evidence.baseline)
        for name, shots in found.items():
            self._told(name, shots)

    def _vary(self) -> None:
        """The same seeds with one environment variable changed at a time."""
        seeds = self._varied_seeds()
        if not self._time_for("factors", f"{count(len(seeds), 'seed')} with each environment variable"):
            return
        with self._own_ledger() as runner:
            effects = self._varying(runner, seeds).run(chosen(self._factors(), ()))
        self._with(factors=effects)
        tried = [effect.factor.name for effect in effects if effect.verdict is not Verdict.UNTRIED]
        self.done.append(f"environment variables: {', '.join(tried) or 'none could matter here'}")

    @contextmanager
    def _own_ledger(self) -> Iterator[Runner]:
        """A runner with a ledger of its own: seeds that were chosen because they fail are no rate."""
        state = self.range.runner.state / ASIDE
        state.mkdir(parents=True, exist_ok=True)
        with Ledger.open(state / "ledger.sqlite") as ledger:
            yield replace(self.range.runner, ledger=ledger, state=state)

    def _varying(self, runner: Runner, seeds: Sequence[int]) -> Varying:
        at = self.range
        return Varying(
            runner=runner,
            target=at.target,
            prepared=at.prepared,
            gpu=at.gpu,
            host=Host(gpus=int(at.gpu is not None), engine=runner.engine.name),
            seeds=seeds,
            clock=self.clock,
            until=self.deadline,
            say=self.say,
        )

    def _varied_seeds(self) -> list[int]:
        """Failing and passing seeds; where a seed does not decide, all of them up to some number.

        Seeds that were chosen because they failed would fail less often the next time, whatever is varied.
        """
        evidence = self.evidence
        failing = [trial.seed for trial in evidence.recorded]
        if not evidence.varying and evidence.fails_again == 1.0:
            return [*failing[:VARIED], *evidence.passing[:VARIED]]
        last = max(evidence.passing, default=0)
        return sorted(seed for seed in {*failing, *evidence.passing} if seed <= last)

    def _factors(self) -> list[Factor]:
        """The kit's own, and those that matrix.yaml names, which the subject may read."""
        named = [Factor(env=((name, value),), what=NAMED) for name, value in self.env]
        known = known_factors([self.range.target.cell])
        return [*named, *(factor for factor in known if factor.env not in {each.env for each in named})]

    # Parts -------------------------------------------------------------------------------------------------

    def _baseline_seeds(self) -> tuple[list[int], bool]:
        """Runs in which some failures are to be expected, and whether each needs a process of its own."""
        failing = list(self.evidence.failing)
        rate = self.evidence.fails_again
        if rate is None:
            return [], False
        if self.evidence.first_only:
            return (failing * FIRSTS)[:FIRSTS], True
        if rate == 0.0:
            rate = max(self.evidence.failed / self.evidence.trials, ENOUGH / MOST)
            wanted = min(MOST, math.ceil(ENOUGH / rate))
            return [*failing, *range(wanted - len(failing))], False
        wanted = min(MOST, math.ceil(ENOUGH / rate))
        return (failing * math.ceil(wanted / len(failing)))[: max(wanted, len(failing))], False

    def _time_for(self, name: str, what: str) -> bool:
        if self.clock() < self.deadline:
            self.say(what)
            return True
        self.missing.setdefault(name, "the budget was spent before that: repro diagnose --budget")
        return False

    def _told(self, name: str, shots: Sequence[Shot]) -> None:
        failed, run = _counts(shots)
        others = len(shots) - run
        self.done.append(
            f"{name}: {failed} of {run} failed" + (f", {others} came to something else" if others else "")
        )

    def _with(self, **changes: object) -> Evidence:
        """The evidence, with what was just learnt."""
        fields: Mapping[str, object] = {**vars_of(self.evidence), **changes}
        self.evidence = Evidence(**fields)  # type: ignore[arg-type]
        return self.evidence


def vars_of(evidence: Evidence) -> dict[str, object]:
    """The fields of evidence, without what was derived from them."""
    return {name: getattr(evidence, name) for name in evidence.__dataclass_fields__}


def _counts(shots: Sequence[Shot]) -> tuple[int, int]:
    rated = [shot for shot in shots if shot.outcome.counts]
    return sum(shot.failed for shot in rated), len(rated)
