"""Altered trials in a cell, aside from the ledger: one process each, and what it recorded."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.bisect.kept import Inputs
from repro.engines.base import Prepared
from repro.minimize.journal import Journal, Ran, identity
from repro.run import Order, Runner, Target
from repro.store.sound import read_sound_events
from repro.trial.minimizing.manners import same_manner
from repro.trial.records import Event, Mode, Outcome

FOLDER = "minimize"
"""Below the state: records of altered trials."""

Events = Sequence[Mapping[str, Any]]


@dataclass(kw_only=True)
class Blocks:
    """Runs blocks of altered trials.

    Args:
        runner: runs them.
        target: cell and code under test.
        prepared: the cell, ready.
        gpu: index of the GPU to use, or None.
        clock: seconds, monotonic.
        until: when time is up, by that clock.
        journal: what an earlier run of the same search ran; or None.
        trials: run so far, by an earlier run, too.
        processes: started so far, by an earlier run, too.
        seconds: that they took.
    """

    runner: Runner
    target: Target
    prepared: Prepared
    gpu: int | None
    clock: Callable[[], float]
    until: float
    journal: Journal | None = None
    trials: int = 0
    processes: int = 0
    seconds: float = 0.0

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.until - self.clock()

    def run(
        self, seeds: Sequence[int], extra: Mapping[str, object], inputs: Inputs | None = None
    ) -> tuple[Events, Path]:
        """Run one process, unless an earlier run of the search did; its events, and its folder.

        Args:
            inputs: takes the place of the draws of the seed that is its identity.

        Raises:
            NotReadyError: the engine, the disk or the GPU failed.
            Interrupted: as `Runner.run`.
        """
        key = _key(seeds, extra, inputs)
        order = self._order(seeds, extra, inputs)
        ran = self.journal.take(key) if self.journal is not None else None
        if ran is None:
            ran = self._run(order)
            cut_short = "reduce" in extra and self.left <= 0
            if self.journal is not None and not cut_short:
                self.journal.add(key, ran)
        events = list(read_sound_events(ran.folder / "records.jsonl", asked=order.asked))
        self.trials += sum(event["event"] == Event.END for event in events)
        self.processes += 1
        self.seconds += ran.seconds
        return events, ran.folder

    def _order(self, seeds: Sequence[int], extra: Mapping[str, object], inputs: Inputs | None) -> Order:
        replay = {inputs.identity: inputs.file} if inputs is not None and inputs.file is not None else {}
        return Order(
            seeds=seeds,
            mode=Mode.REPLAY,
            gpu=self.gpu,
            keep_inputs=0,
            replay=replay,
            aside=FOLDER,
            once=True,
            extra=extra,
        )

    def _run(self, order: Order) -> Ran:
        began = self.clock()
        ran = self.runner.run(self.target, self.prepared, order)
        ran.require("the trials of a smaller case could not run")
        return Ran(folder=ran.folders[-1], seconds=self.clock() - began)

    def take(self, folder: Path, reduced: Mapping[str, Any]) -> Inputs | None:
        """Inputs that a trial saved, copied to where no trial can change them; None where there are none."""
        path, sha256 = reduced.get("path"), str(reduced.get("sha256") or "")
        source = folder / str(path)
        if not path or not source.is_file() or not source.resolve().is_relative_to(folder.resolve()):
            return None
        content = source.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            return None
        home = self.runner.state / "inputs" / f"{sha256}.pt"
        home.parent.mkdir(parents=True, exist_ok=True)
        draft = home.with_name(f".{home.name}.{os.getpid()}")
        draft.write_bytes(content)
        draft.chmod(0o444)
        draft.replace(home)
        return Inputs(seed=int(reduced["seed"]), identity=int(sha256[:15], 16), file=home)


def _key(seeds: Sequence[int], extra: Mapping[str, Any], inputs: Inputs | None) -> str:
    """Stands for a process: all that it is asked, but for the time that it is given."""
    asked = dict(extra)
    if "reduce" in asked:
        asked["reduce"] = {name: value for name, value in asked["reduce"].items() if name != "seconds"}
    return identity({"seeds": list(seeds), "asked": asked, "inputs": inputs.identity if inputs else None})


def only(events: Events, kind: Event) -> Mapping[str, Any] | None:
    """The last event of a kind, or None."""
    return next((event for event in reversed(events) if event["event"] == kind), None)


def key_of(event: Mapping[str, Any]) -> str:
    """What a failure is recognised by, or "" where the event does not say."""
    return str((event.get("signature") or {}).get("key") or "")


def outcomes(events: Events, key: str, known: Collection[str] = ()) -> tuple[int, int, Counter[str]]:
    """Trials that failed with a signature, trials that passed, and all others by their outcome.

    Args:
        known: manners in which compared values differed before; a failure in another is one of the others.
    """
    failed = passed = 0
    others: Counter[str] = Counter()
    for event in events:
        if event["event"] != Event.END:
            continue
        outcome = Outcome(event["outcome"])
        if outcome is Outcome.PASSED:
            passed += 1
        elif outcome is Outcome.FAILED and key in ("", key_of(event)) and same_manner(event, known):
            failed += 1
        else:
            others[outcome.value] += 1
    return failed, passed, others
