"""Looks for one trial that fails as wanted, and makes its inputs small; every run of it is in the record."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ..altering.alteration import Reduction
from ..classify import is_sticky
from ..inputs.draws import generator_states, restore_states
from ..inputs.kept import Keeper, Replay
from ..protocol import Protocol
from ..records import Event, Outcome
from ..trials import Trials
from .elements import Elements, describe_elements
from .fitting import Given, ways
from .manners import manners, same_manner
from .reduction import Enough, Span, needed, rounder

_ROUNDED = 48
"""Elements that get rounder values, at most."""

End = Dict[str, Any]


@dataclass
class Attempt:
    """One way to come by a failing trial.

    Args:
        seed: of the trial.
        given: draws that are put in place and recorded, or None to run the seed as it is.
        states: of Python's and numpy's generators, or None for what the seed gives.
    """

    seed: int
    given: Optional[Given] = None
    states: Optional[Dict[str, Any]] = None


@dataclass
class Failing:
    """A trial that failed as wanted, every time.

    Args:
        attempt: how it came about.
        end: its `end` line.
        tensors: what it drew; empty where nothing could be recorded.
        described: the draws.
    """

    attempt: Attempt
    end: End
    tensors: List[Any] = field(default_factory=list)
    described: List[Dict[str, Any]] = field(default_factory=list)


class Reducing(Trials):
    """Trials of one test until one fails as wanted; then its inputs are made smaller."""

    def run(self, protocol: Protocol) -> None:
        """Find, confirm, reduce; one line says what came of it."""
        self._protocol, self._trial_number = protocol, self._request.first_trial
        self._until = time.perf_counter() + self._wanted.seconds
        self._lost, self._manners = "", set(self._wanted.manners)
        with contextlib.suppress(Enough):
            found = next(self._failing(), None)
            if found is not None:
                self._records.write(Event.REDUCED, **self._reduced(found), trials=self._trial_number)
        self._records.write(
            Event.BLOCK_END,
            counts=dict(self._counts),
            complete=not self._lost,
            reason=self._lost,
            time=time.time(),
        )

    @property
    def _wanted(self) -> Reduction:
        reduction = self._request.altered.reduction
        assert reduction is not None
        return reduction

    # Finding -------------------------------------------------------------------------------------------

    def _failing(self) -> Iterator[Failing]:
        for attempt in self._attempts():
            end = self._attempt(attempt)
            if self._as_wanted(end):
                self._manners = set(self._wanted.manners) or manners(end)
                given = attempt.given
                if given is not None and given.too_large:
                    attempt, given = Attempt(attempt.seed), None
                tensors = list(given.tensors) if given is not None else []
                found = Failing(attempt, end, tensors, given.described if given is not None else [])
                if all(self._as_wanted(self._again(found)) for _ in range(self._wanted.confirm)):
                    yield found
                self._manners = set(self._wanted.manners)  # that failure came by chance

    def _attempts(self) -> Iterator[Attempt]:
        """Kept inputs, fitted in each way, then seeds."""
        for seed in self._request.seeds:
            path = self._request.replay.get(seed)
            if path is not None:
                replay = Replay(path)
                for way in ways(len(replay.tensors)):
                    yield Attempt(replay.seed, Given(replay.torch, replay.tensors, way), replay.states)
            else:
                yield Attempt(seed, self._given([]))

    def _given(self, tensors: Sequence[Any]) -> Optional[Given]:
        if not self._wanted.record or "torch" not in sys.modules:
            return None
        return Given(sys.modules["torch"], tensors)

    def _as_wanted(self, end: End) -> bool:
        key = self._wanted.key
        failed = end["outcome"] == Outcome.FAILED.value
        named = failed and (not key or end["signature"]["key"] == key)
        return bool(named and same_manner(end, self._manners))

    def _again(self, found: Failing, tensors: Optional[Sequence[Any]] = None) -> End:
        """The same trial, or the same with other values in its draws."""
        given = self._given(found.tensors if tensors is None else tensors) if found.tensors else None
        return self._attempt(Attempt(found.attempt.seed, given, found.attempt.states), brief=True)

    def _attempt(self, attempt: Attempt, *, brief: bool = False) -> End:
        """Run one trial and record it."""
        if self._lost or time.perf_counter() > self._until:
            raise Enough
        trial, self._trial_number = self._trial_number, self._trial_number + 1
        self._records.write(Event.START, trial=trial, seed=attempt.seed, time=time.time())
        self._seeding.seed(attempt.seed)
        if attempt.states is not None:
            restore_states(attempt.states)
        elif attempt.given is not None:
            attempt.states = generator_states()
        self._comparisons.begin()
        with attempt.given.mode() if attempt.given is not None else contextlib.nullcontext():
            ran = self._protocol.run()
        end = self._end(ran, self._comparisons.end())
        self._counts[end["outcome"]] += 1
        told = {name: value for name, value in end.items() if not (brief and name == "comparisons")}
        self._records.write(Event.END, trial=trial, seed=attempt.seed, time=time.time(), **told)
        if ran.error is not None and is_sticky(ran.error):
            self._lost = "the CUDA context of this process is lost"
        return end

    # Reducing ------------------------------------------------------------------------------------------

    def _reduced(self, found: Failing) -> Dict[str, Any]:
        """The fields of the `reduced` line."""
        told: Dict[str, Any] = {
            "seed": found.attempt.seed,
            "confirmed": self._wanted.confirm,
            "signature": found.end["signature"],
            "message": found.end.get("message", ""),
            "draws": found.described,
            "time": time.time(),
            "digest": digest(found),
            "manners": sorted(self._manners),
        }
        told["same"] = bool(self._wanted.known) and told["digest"] == self._wanted.known
        if not found.tensors or told["same"]:
            return {**told, "path": None, "reason": "nothing was drawn, or draws are not recorded"}
        if self._wanted.elements:
            told.update(self._shrink(found))
        with contextlib.suppress(Enough):
            found.end = self._again(found)
        told.update(message=found.end.get("message", ""), digest=digest(found))
        return {**told, "comparisons": found.end.get("comparisons", []), **self._save(found)}

    def _shrink(self, found: Failing) -> Dict[str, Any]:
        """Set elements to 0, then to rounder values, as long as the same elements of a comparison differ."""
        elements = Elements(found.tensors)
        where = failing_elements(found.end)

        def holds(spans: Sequence[Span]) -> bool:
            end = self._again(found, elements.only(spans))
            return self._as_wanted(end) and failing_elements(end) <= where

        spans, complete = needed(elements.spans, holds)
        found.tensors = elements.only(spans)
        with contextlib.suppress(Enough):
            self._round(found, where)
        return {**describe_elements(found.tensors, found.described), "complete": complete}

    def _round(self, found: Failing, where: Set[Tuple[int, ...]]) -> None:
        elements = Elements(found.tensors)
        places = elements.nonzero(_ROUNDED + 1)
        for place in places if len(places) <= _ROUNDED else ():
            for value in rounder(elements.value(place)):
                changed = elements.changed(place, value)
                end = self._again(found, changed)
                if self._as_wanted(end) and failing_elements(end) <= where:
                    found.tensors, elements = changed, Elements(changed)
                    break

    def _save(self, found: Failing) -> Dict[str, Any]:
        """Save the inputs as kept ones are."""
        draws = Given(sys.modules["torch"])
        draws.described, draws.tensors = found.described, found.tensors
        keeper = Keeper(self._request.records / "inputs", 1)
        saved = keeper.save(found.attempt.seed, draws, found.attempt.states or {})
        return {name: saved[name] for name in ("path", "reason", "sha256", "bytes") if name in saved}


def digest(found: Failing) -> str:
    """Stands for what a trial drew and what its comparisons measured; "" where it compared nothing."""
    compared = found.end.get("comparisons")
    told = json.dumps([compared, found.described], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16] if compared else ""


def failing_elements(end: End) -> Set[Tuple[int, ...]]:
    """Comparison, and index in it, of each element that differed; of many, those that differed most."""
    return {
        (one["index"], *at["index"])
        for one in end.get("comparisons", [])
        for at in (one.get("worst") or ())
        if not one["passed"]
    }
