"""All that was measured for a diagnosis, and what follows from it before any cause is weighed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from repro.adapting import Jump
from repro.diagnose.elements import Element, elements_of
from repro.diagnose.shots import Key, Shot, key
from repro.factors import Effect
from repro.inspect import Probe
from repro.stats import fisher
from repro.store import Trial
from repro.ui import count

ONE_ROUNDING = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Largest relative error of a number that is rounded to a type, by the type's name."""
CLASS = 1e3
"""Times that an error must shrink in float64 to be one of rounding."""
CLEARLY = 4.0
"""Times that an error must shrink in float64 where a cast of the test's own leaves some of it."""
GAP = 30.0
"""Times that the errors of failing trials may lie above those of passing ones and still go on from them."""
CHANCE = 0.01
"""How likely a difference between two sets of trials may be by chance before it counts."""


@dataclass(frozen=True, kw_only=True)
class CellRate:
    """How often the test fails in a cell, and how its failing seeds agree with those of the cell diagnosed.

    Args:
        cell: id.
        failed, trials: of the ledger.
        common: seeds that ran in both.
        differ: those that failed in one of the two alone.
        chance: how likely so lopsided a difference would be by chance (McNemar).
    """

    cell: str
    failed: int
    trials: int
    common: int
    differ: int
    chance: float


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was measured.

    Args:
        failed, trials: how often it failed, from the ledger.
        failing: seeds that failed in the ledger, and were looked into.
        passing: seeds that passed.
        recorded: trials of the ledger that failed.
        clean_ratio: largest error of a passing trial, in units of its tolerance; None without comparisons.
        same: by failing seed, runs in one process that had run nothing else.
        fresh: runs of failing and passing seeds, each first in its process.
        baseline: failing seeds again, without anything switched, to hold interventions against.
        switched: by intervention, the seeds of the baseline with it.
        watched: runs of failing and passing seeds, with what they drew.
        probes: by failing seed.
        control: the probe of a passing seed, or None.
        factors: what environment variables do to it, the same seeds with each and without.
        cells: the other cells of the ledger.
        jumps: where an adapter of the operator sees jumps of its derivative.
        predicted_rate: from an adapter, or None.
        missing: by experiment, why it was not done.
    """

    failed: int
    trials: int
    failing: Sequence[int]
    passing: Sequence[int] = ()
    recorded: Sequence[Trial] = ()
    clean_ratio: float | None = None
    same: Mapping[int, Sequence[Shot]] = field(default_factory=dict)
    fresh: Sequence[Shot] = ()
    baseline: Sequence[Shot] = ()
    switched: Mapping[str, Sequence[Shot]] = field(default_factory=dict)
    watched: Sequence[Shot] = ()
    probes: Mapping[int, Probe] = field(default_factory=dict)
    control: Probe | None = None
    factors: Sequence[Effect] = ()
    cells: Sequence[CellRate] = ()
    jumps: Sequence[Jump] = ()
    predicted_rate: float | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    # Is it a function of the inputs ------------------------------------------------------------------------

    @cached_property
    def repeats(self) -> dict[int, list[Shot]]:
        """Runs of each failing seed with nothing switched."""
        found: dict[int, list[Shot]] = {seed: list(shots) for seed, shots in self.same.items()}
        for shot in (*self.fresh, *self.baseline):
            if shot.seed in self.failing:
                found.setdefault(shot.seed, []).append(shot)
        return found

    @cached_property
    def first_only(self) -> bool:
        """Whether a seed fails where it is the first of its process, and never after that."""
        series = [shots for shots in self.same.values() if len(shots) > 1]
        firsts = [shots[0].failed for shots in series] + [shot.failed for shot in self.fresh]
        later = [shot.failed for shots in series for shot in shots[1:]]
        return bool(later) and len(firsts) > 1 and all(firsts) and not any(later)

    @cached_property
    def varying(self) -> list[int]:
        """Failing seeds whose runs do not all compute the same numbers where some of them fail."""
        return [seed for seed, shots in self.repeats.items() if self._varies(seed, shots)]

    def _varies(self, seed: int, shots: Sequence[Shot]) -> bool:
        recorded = (one for trial in self.recorded if trial.seed == seed for one in trial.comparisons)
        keys = {key(one) for one in recorded if one.get("passed") is False}
        keys = keys.union(*(shot.failing for shot in shots))
        return len({shot.numbers(keys) for shot in shots}) > 1

    @property
    def steady(self) -> bool:
        """Whether every failing seed that ran again failed every time, with the same numbers."""
        return bool(self.repeats) and not self.varying and self.fails_again == 1.0

    @cached_property
    def fails_again(self) -> float | None:
        """Share of the runs of failing seeds that failed again; None where none ran."""
        shots = [shot for runs in self.repeats.values() for shot in runs]
        return sum(shot.failed for shot in shots) / len(shots) if shots else None

    # What interventions change -----------------------------------------------------------------------------

    def touched(self, name: str) -> int:
        """How often an intervention found something to change."""
        return sum(shot.touched.get(name, 0) for shot in self.switched.get(name, ()))

    def cured(self, name: str) -> tuple[int, int, int, int] | None:
        """(failed, run) without an intervention and with it; None where it could not be tried."""
        shots = [shot for shot in self.switched.get(name, ()) if shot.outcome.counts]
        plain = [shot for shot in self.baseline if shot.outcome.counts]
        if not shots or not plain:
            return None
        return sum(s.failed for s in plain), len(plain), sum(s.failed for s in shots), len(shots)

    def cures(self, name: str) -> bool:
        """Whether it fails clearly less often with an intervention, and hardly ever."""
        counts = self.cured(name)
        if counts is None:
            return False
        failed, run, still, again = counts
        return still / again <= 0.1 * failed / run and fisher(failed, run, still, again) < CHANCE

    @property
    def cured_where(self) -> str:
        """Where the failure is gone although no number was computed otherwise, or ""."""
        known = {"zero-fill": "where new memory is filled with 0", "first-config": "without autotuning"}
        return next((where for name, where in known.items() if self.cures(name)), "")

    @cached_property
    def wide(self) -> Wide | None:
        """What the same inputs do in float64; None where that could not be tried."""
        shots = [shot for shot in self.switched.get("float64", ()) if shot.outcome.counts]
        if not shots or not self.touched("float64"):
            return None
        again = [shot for runs in self.repeats.values() for shot in runs if shot.failed]
        narrow = _errors(again)
        return Wide(
            failed=sum(shot.failed for shot in shots),
            run=len(shots),
            error=max(_errors(shots, narrow.keys()).values(), default=0.0),
            narrow=max(narrow.values(), default=0.0),
            cast=_one_rounding(shots, narrow.keys(), again),
        )

    @property
    def why_not_wide(self) -> str:
        """Why nothing is known about float64."""
        shots = [shot for shot in self.switched.get("float64", ()) if not shot.outcome.counts]
        if shots:
            return f"in float64 the test does something else: {shots[0].message.splitlines()[0][:160]}"
        if "float64" in self.switched and not self.touched("float64"):
            return "the test asks for nothing in float32"
        return self.missing.get("interventions", "the test was not run in float64")

    # Failing elements --------------------------------------------------------------------------------------

    @cached_property
    def elements(self) -> list[Element]:
        """Failing elements that were looked into, over all failing seeds."""
        wide = self.wide
        rounding = wide is not None and wide.rounding and not wide.failed and self.goes_on
        return [
            each
            for seed, probe in self.probes.items()
            for each in elements_of(seed, probe, self.jumps, rounding=rounding)
        ]

    @property
    def of_elements(self) -> str:
        """ "of 4 failing elements"."""
        return f"of {count(len(self.elements), 'failing element')}"

    @property
    def of_seeds(self) -> str:
        """ "2 of 4 failing seeds": those whose numbers vary."""
        return f"{len(self.varying)} of {count(len(self.repeats), 'failing seed')}"

    @property
    def out_of_sight(self) -> str:
        """Why looking into failing trials told nothing of their numbers, or ""."""
        if not self.probes or any(probe.steps or probe.precisions for probe in self.probes.values()):
            return ""
        return "what is compared does not come from torch: no operation of it was seen"

    @property
    def compares(self) -> bool:
        """Whether a failing trial failed at numbers that it compared."""
        return any(one.get("passed") is False for trial in self.recorded for one in trial.comparisons)

    @cached_property
    def ratios(self) -> list[float]:
        """Of each failing trial of the ledger, its largest error in units of the tolerance."""
        found = []
        for trial in self.recorded:
            worst = [_number(one.get("ratio")) for one in trial.comparisons if one.get("passed") is False]
            found += [max(worst)] if worst else []
        return found

    @property
    def finite_ratios(self) -> list[float]:
        """The ratios that are numbers."""
        return [ratio for ratio in self.ratios if math.isfinite(ratio)]

    @property
    def goes_on(self) -> bool:
        """Whether the errors of failing trials go on from those of passing ones, as rounding's do."""
        known, clean = self.finite_ratios, self.clean_ratio
        return bool(known) and clean is not None and min(known) <= GAP * clean


@dataclass(frozen=True, kw_only=True)
class Wide:
    """The same inputs in float64.

    Args:
        failed, run: trials.
        error: largest absolute error, over the comparisons that fail in float32.
        narrow: the same in float32.
        cast: whether what is left is one rounding to the narrower type, as a cast of the test's own gives it.
    """

    failed: int
    run: int
    error: float
    narrow: float
    cast: bool = False

    @property
    def shrinks(self) -> float:
        """How many times smaller the largest error is; about 5e8 where it is all rounding."""
        if not math.isfinite(self.narrow):
            return 1.0 if not math.isfinite(self.error) else math.inf
        return self.narrow / self.error if self.error else math.inf

    @property
    def rounding(self) -> bool:
        """Whether the error is one of rounding."""
        return self.shrinks > CLASS or (self.cast and not self.failed and self.shrinks > CLEARLY)

    @property
    def said(self) -> str:
        """In one sentence."""
        return (
            f"with the same inputs in float64, {self.failed} of {self.run} runs fail, and the largest"
            " error is"
            f" {self.error:.2g} instead of {self.narrow:.2g}"
            + (
                ", one rounding to the type that the test casts to"
                if self.cast and self.shrinks <= CLASS
                else ""
            )
        )


def _errors(shots: Iterable[Shot], only: Iterable[Key] | None = None) -> dict[Key, float]:
    """By comparison, the largest absolute error: of those that failed, or of those named."""
    wanted = None if only is None else set(only)
    found: dict[Key, float] = {}
    for shot in shots:
        for one in shot.comparisons:
            which, failed = key(one), one.get("passed") is False
            if "max_abs" in one and (failed if wanted is None else which in wanted):
                found[which] = max(found.get(which, 0.0), _number(one["max_abs"]))
    return found


def _one_rounding(shots: Iterable[Shot], only: Collection[Key], narrow: Iterable[Shot]) -> bool:
    """Whether the comparisons named are no further apart than one rounding to their former type."""
    types = {key(one): str(one.get("dtype")) for shot in narrow for one in shot.comparisons}
    found = [
        _number(one["max_rel"]) <= ONE_ROUNDING.get(types.get(key(one), ""), 0.0)
        for shot in shots
        for one in shot.comparisons
        if key(one) in only and "max_rel" in one
    ]
    return bool(found) and all(found)


def _number(value: object) -> float:
    """A recorded number; NaN counts as infinitely far."""
    number = float(str(value)) if value is not None else 0.0
    return math.inf if math.isnan(number) else number
