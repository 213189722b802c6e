"""Trials run for a diagnosis: beside the ledger, under whatever an experiment changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from repro.engines.base import Prepared
from repro.run import Order, Runner, Target
from repro.store.sound import read_sound_events
from repro.trial.records import Event, Mode, Outcome

ASIDE = "diagnosis"


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One trial of an experiment.

    Args:
        seed: of the trial.
        order: number of the trial in its process, from 0.
        outcome: what came of it.
        message: what it failed with.
        comparisons: what it compared, as recorded.
        touched: how often each intervention found something to change.
        drawn: what it drew, where that was watched.
        mutants: what its comparisons would make of bugs, where that was watched.
    """

    seed: int
    order: int
    outcome: Outcome
    message: str = ""
    comparisons: Sequence[Mapping[str, Any]] = ()
    touched: Mapping[str, int] = field(default_factory=dict)
    drawn: Sequence[Mapping[str, Any]] = ()
    mutants: Sequence[Mapping[str, Any]] = ()

    @property
    def failed(self) -> bool:
        """Whether it failed as the target does."""
        return self.outcome is Outcome.FAILED

    @property
    def failing(self) -> set[Key]:
        """The comparisons that did not pass."""
        return {key(one) for one in self.comparisons if one.get("passed") is False}

    def numbers(self, keys: Collection[Key]) -> tuple[object, ...]:
        """What it computed, as far as some comparisons tell: equal for two trials that computed the same."""
        parts = ("max_abs", "max_rel", "mismatched", "mismatched_at")
        wanted = [one for one in self.comparisons if key(one) in keys]
        return (self.outcome, *((key(one), *(str(one.get(part)) for part in parts)) for one in wanted))


Key = tuple[object, object]
"""Which comparison of a trial: its index, and the item of nested data."""


def key(comparison: Mapping[str, Any]) -> Key:
    """Which comparison of its trial it is."""
    return comparison.get("index"), comparison.get("item")


@dataclass(kw_only=True)
class Range:
    """Where shots are fired: one target, one GPU.

    Args:
        runner: runs them.
        target: cell and code under test.
        prepared: the target's cell.
        gpu: index of the GPU to use, or None.
    """

    runner: Runner
    target: Target
    prepared: Prepared
    gpu: int | None

    def fire(
        self,
        seeds: Sequence[int],
        *,
        fresh: bool = False,
        intervention: str = "",
        env: Mapping[str, str] | None = None,
        watch: bool = False,
    ) -> list[Shot]:
        """Run seeds, in one process or in one each; nothing of it enters the ledger.

        Args:
            seeds: one a trial; may name a seed more than once.
            fresh: give every trial a process of its own.
            intervention: what is switched; a name of `INTERVENTIONS` in `repro.trial.altering`, or "".
            env: further environment variables.
            watch: note what is drawn.

        Raises:
            Interrupted: as `Runner.run`.
            NotReadyError: the engine, the disk or the GPU failed.
        """
        order = self._order(seeds, [intervention], watch=watch)
        mode = Mode.FRESH if fresh else Mode.SEEDS
        return self._run(replace(order, mode=mode, env=tuple((env or {}).items())))

    def fire_series(self, series: Mapping[str, Sequence[int]]) -> dict[str, list[Shot]]:
        """Run several series in one process, each under its intervention.

        Args:
            series: seeds by intervention; "" for none. Those that may kill the process come last.

        Raises:
            Interrupted: as `Runner.run`.
            NotReadyError: the engine, the disk or the GPU failed.
        """
        plan = [(name, seed) for name, seeds in series.items() for seed in seeds]
        found: dict[str, list[Shot]] = {name: [] for name in series}
        while plan:
            order = self._order([seed for _, seed in plan], [name for name, _ in plan])
            shots = self._run(replace(order, once=True))
            for (name, _), shot in zip(plan, shots, strict=False):
                found[name].append(shot)
            plan = plan[len(shots) :] if shots else []
        return found

    def _order(self, seeds: Sequence[int], interventions: Sequence[str], *, watch: bool = False) -> Order:
        extra: dict[str, object] = {"watch": watch}
        if any(interventions):
            extra["interventions"] = [[name] if name else [] for name in interventions]
        return Order(seeds=list(seeds), gpu=self.gpu, keep_inputs=0, aside=ASIDE, extra=extra)

    def _run(self, order: Order) -> list[Shot]:
        ran = self.runner.run(self.target, self.prepared, order)
        ran.require(f"the trials of an experiment could not run in {self.target.cell.id}")
        return [shot for folder in ran.folders for shot in read_shots(folder / "records.jsonl", order.asked)]


def read_shots(path: Path, asked: Collection[int] | None = None) -> list[Shot]:
    """The trials of one process's record; a trial that its process died of is a crash.

    Args:
        asked: seeds that were to run; other trials are left out. None for any.
    """
    return list(_shots(read_sound_events(path, asked=asked)))


def _shots(events: Iterable[Mapping[str, Any]]) -> Iterable[Shot]:
    started: int | None = None
    around: Mapping[str, Any] = {}
    count = 0
    for event in events:
        kind = event["event"]
        if kind == Event.START:
            started, around = int(event["seed"]), {}
        elif kind == Event.CIRCUMSTANCES:
            around = event
        elif kind == Event.END and started is not None:
            yield _shot(event, around, count)
            started, count = None, count + 1
    if started is not None:
        yield Shot(seed=started, order=count, outcome=Outcome.CRASHED, message="its process died")


def _shot(event: Mapping[str, Any], around: Mapping[str, Any], order: int) -> Shot:
    return Shot(
        seed=int(event["seed"]),
        order=order,
        outcome=Outcome(event["outcome"]),
        message=str(event.get("message", "")),
        comparisons=event.get("comparisons", ()),
        touched=around.get("touched", {}),
        drawn=around.get("drawn", ()),
        mutants=around.get("mutants", ()),
    )
