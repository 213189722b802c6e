"""The same seeds with and without each factor, in one cell; both sides are cells of the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from repro import ui
from repro.engines.base import Prepared
from repro.factors.judging import Effect, Pairs, Verdict, judge_factors, pair
from repro.factors.known import Factor, Host, why_not
from repro.run import Order, Runner, Target
from repro.store import Series, Trial

SAME = Factor(env=(("REPRO_AGAIN", "1"),), what="nothing reads it: the same trials once more")
"""What the others are held against where numbers change from run to run by themselves."""
BLOCK = 200
"""Trials of one process, at most."""


@dataclass(kw_only=True)
class Varying:
    """Varies one factor at a time.

    A cell with a variable set is a cell of its own, as it would be in the matrix: its trials are in the
    ledger under their own id, with the environment as the process saw it, and are not run twice.

    Args:
        runner: runs the trials.
        target: the cell without any factor, and the code under test.
        prepared: the cell, ready; variables change nothing about it.
        gpu: index of the GPU to use, or None.
        host: what the machine has.
        seeds: of every side.
        clock: seconds, monotonic.
        until: when time is up, by that clock.
        say: takes lines of progress.
    """

    runner: Runner
    target: Target
    prepared: Prepared
    gpu: int | None
    host: Host
    seeds: Sequence[int]
    clock: Callable[[], float]
    until: float
    say: Callable[[str], None]
    _without: dict[int, list[Trial]] = field(default_factory=dict)

    def run(self, factors: Sequence[Factor]) -> list[Effect]:
        """Try each factor that can make a difference here, and judge all of them together.

        Raises:
            NotReadyError: the engine, the disk or the GPU failed, or time was up before the first factor.
            Interrupted: as `Runner.run`.
        """
        untried = {factor: why_not(factor, self.target.cell, self.host) for factor in factors}
        untried = {factor: reason for factor, reason in untried.items() if reason}
        found: dict[Factor, Pairs] = {}
        for factor in factors:
            if factor in untried:
                continue
            without = self._trials(None, self.seeds)
            if self.clock() >= self.until:
                untried[factor] = "time was up"
                continue
            found[factor] = pair(without, self._trials(factor, self.seeds))
            self.say(f"{factor.name}: {_told(found[factor])}")
        again = self._again(found)
        effects = judge_factors(found, untried, again)
        by_itself = again is not None and again.differ
        return [self._second(effect) if by_itself else effect for effect in effects]

    def _again(self, found: Mapping[Factor, Pairs]) -> Pairs | None:
        """The same trials twice without any factor, where some number changed; None where time is up, too."""
        if not any(pairs.differ for pairs in found.values()) or self.clock() >= self.until:
            return None
        again = pair(self._trials(None, self.seeds), self._trials(SAME, self.seeds))
        self.say(f"nothing changed: {_told(again)}")
        return again

    def _second(self, effect: Effect) -> Effect:
        """A factor that changes the rate of a test that changes by itself: the next seeds, in new processes.

        Trials of one process share its memory, its addresses and its caches. Where those decide, its seeds
        are no independent trials, and one process a side does not tell an effect from chance.
        """
        if effect.verdict is not Verdict.MATTERS:
            return effect
        seeds = range(max(self.seeds) + 1, max(self.seeds) + 1 + len(self.seeds))
        second = pair(self._trials(None, seeds), self._trials(effect.factor, seeds))
        self.say(f"{effect.factor.name}, other seeds in new processes: {_told(second)}")
        return effect.having_second(second)

    def _trials(self, factor: Factor | None, seeds: Sequence[int]) -> list[Trial]:
        """The trials of one side, in the ledger when this returns."""
        if factor is None and seeds[0] in self._without:
            return self._without[seeds[0]]
        cell = self.target.cell
        if factor is not None:
            cell = replace(cell, env=tuple(sorted({**dict(cell.env), **dict(factor.env)}.items())))
        target = replace(self.target, cell=cell)
        subject = target.subject
        series = self.runner.series(cell, subject.revision, subject.test, gpu=self.gpu)
        self._fill(target, series, factor, seeds)
        wanted = set(seeds)
        trials = [trial for trial in self._of(series) if trial.seed in wanted]
        if factor is None:
            self._without[seeds[0]] = trials
        return trials

    def _fill(self, target: Target, series: Series, factor: Factor | None, seeds: Sequence[int]) -> None:
        """Run what the ledger does not have yet."""
        done = self.runner.ledger.done_seeds(series)
        missing = [seed for seed in seeds if seed not in done]
        prepared = replace(self.prepared, cell=target.cell)
        for start in range(0, len(missing), BLOCK):
            if self.clock() >= self.until:
                return
            order = Order(
                seeds=missing[start : start + BLOCK],
                gpu=self.gpu,
                cache=None if factor is None else self._cache(target),
            )
            ran = self.runner.run(target, prepared, order)
            ran.require(f"the trials of {target.cell.id} could not run", resumes=True)
            if ran.gave_up:
                return

    def _cache(self, target: Target) -> Path:
        """A kernel cache of its own: not every Triton knows that a variable changes what it compiles."""
        name = hashlib.sha256(f"{target.cell.id} {target.subject.revision}".encode()).hexdigest()[:16]
        return self.runner.state / "cache" / f"factor-{name}"

    def _of(self, series: Series) -> list[Trial]:
        return list(
            self.runner.ledger.trials(
                cell=series.cell, revision=series.revision, test=series.test, mode=series.mode, gpu=series.gpu
            )
        )


def _told(pairs: Pairs) -> str:
    counts = pairs.counts
    without, with_it = counts.both + counts.a_only, counts.both + counts.b_only
    measured = ui.count(pairs.measured, "seed")
    numbers = f"; numbers differ for {pairs.changed} of {measured}" if pairs.measured else ""
    return f"{without} of {counts.n} failed without it, {with_it} with it{numbers}"
