"""From a failing seed to the smallest case: what it is made of, whether it replays, what can go."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repro import ui
from repro.bisect.tryout import own_seeds
from repro.errors import NotReproducedError
from repro.minimize.answer import Minimized, Step
from repro.minimize.blocks import Blocks, key_of, only, outcomes
from repro.minimize.case import Case, Kind, Parameter, parameters_of
from repro.minimize.gradients import look_at_gradients
from repro.minimize.often import AsOften
from repro.minimize.shrink import Shrinking, Verdict
from repro.minimize.trying import BATCH, ByRate, ByReplay, TimeIsUp, Trying
from repro.trial.minimizing.manners import manners
from repro.trial.records import Event

_SEEN = 20
"""Failures that a rate is taken from, before cases are held against it."""
_CONFIRM = 9
"""Further runs of the first failure: one that comes in two of three runs passes in 2 % of cases."""
_TYPES = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a search for the smallest case may take.

    Args:
        seeds: fresh seeds that each smaller case gets, where the failure replays.
        share: of the first case's rate that a smaller one must have, where rates decide.
        error: chance of keeping a case that has no more than that, or of dropping one that has it all.
        most: trials to find out how often the first case fails, where rates decide.
        again: runs of the smallest case in the end.
    """

    seeds: int = 50
    share: float = 0.5
    error: float = 0.05
    most: int = 1000
    again: int = 5


@dataclass(kw_only=True)
class Minimizing:
    """Makes the case of a failing seed smaller.

    Args:
        blocks: runs trials.
        options: what it may take.
        say: takes lines of progress.
    """

    blocks: Blocks
    options: Options
    say: Callable[[str], None]

    def run(self, seed: int, key: str = "") -> Minimized:
        """Find the smallest case.

        Args:
            seed: one that fails.
            key: key of the signature that has to stay; "" for the one that this seed shows.

        Raises:
            NotReproducedError: the seed does not fail, and too few others do.
            NotReadyError, Interrupted: as `Runner.run`.
        """
        parameters = self._describe(seed)
        trying, rate = self._way(seed, key, parameters)
        steps: list[Step] = []
        shrinking = Shrinking(parameters, lambda case: self._step(trying, case, shrinking, parameters, steps))
        complete = True
        dtypes: dict[str, bool] = {}
        try:
            shrinking.run()
            dtypes = self._dtypes(trying, shrinking, parameters, steps)
        except TimeIsUp:
            complete = False
            self.say("time is up; the case may get smaller yet")
        again = trying.again(shrinking.best, self._times(rate))
        gradients = None
        if trying.failure is not None and again[0]:
            gradients = look_at_gradients(self.blocks, shrinking.best.request(parameters), trying.failure)
        return Minimized(
            cell=self.blocks.target.cell.id,
            revision=self.blocks.target.subject.revision,
            test=self.blocks.target.subject.test,
            key=trying.key,
            by=trying.by,
            rate=rate,
            case=shrinking.best,
            parameters=parameters,
            without_effect=shrinking.without_effect,
            failure=trying.failure,
            dtypes=dtypes,
            steps=steps,
            trials=self.blocks.trials,
            processes=self.blocks.processes,
            seconds=self.blocks.seconds,
            complete=complete,
            again=again,
            gradients=gradients,
        )

    # Before ----------------------------------------------------------------------------------------------

    def _describe(self, seed: int) -> list[Parameter]:
        """What the case is made of."""
        events, _ = self.blocks.run([seed], {"expand": "case"})
        described = only(events, Event.CASE)
        if described is None:
            missing = only(events, Event.MISSING) or only(events, Event.END) or {}
            message = ui.one_line(str(missing.get("message") or "its process died"))
            raise NotReproducedError(
                f"the test could not be run: {message}",
                why="a case is read off one run of its test",
                next_step="repro matrix, which says what becomes of it",
            )
        return parameters_of(described)

    def _way(
        self, seed: int, key: str, parameters: Sequence[Parameter]
    ) -> tuple[ByReplay | ByRate, tuple[int, int] | None]:
        """By replay where the seed fails every time, else by rate; with the rate in that case."""
        first = own_seeds(f"minimize {self.blocks.target.subject.test}")
        for record in (True, False):
            trying = ByReplay(
                blocks=self.blocks,
                parameters=parameters,
                key=key,
                seeds=0,
                record=record,
                next_seed=seed,
                confirm=_CONFIRM,
            )
            if self._replays(trying):
                trying.seeds, trying.next_seed, trying.confirm = self.options.seeds, first, 2
                return trying, None
        self.say(f"seed {seed} does not fail every time; rates decide")
        return self._by_rate(key, parameters, first)

    def _replays(self, trying: ByReplay) -> bool:
        """Whether the seed that is next fails every time; its inputs are made small in the same process."""
        tried = trying.attempt(Case())
        if tried.verdict is not Verdict.STAYS or trying.failure is None:
            return False
        record = trying.failure.record
        trying.key = trying.key or key_of(record)
        trying.manners = tuple(map(str, record.get("manners") or ()))
        told = f"; of {record['drawn']} numbers drawn {record['left']} matter" if "left" in record else ""
        self.say(f"seed {trying.failure.seed} fails every time{told}")
        return True

    def _by_rate(
        self, key: str, parameters: Sequence[Parameter], first: int
    ) -> tuple[ByRate, tuple[int, int]]:
        failed = passed = run = 0
        seen: set[str] = set()
        while failed < _SEEN and run < self.options.most and self.blocks.left > 0:
            size = min(max(BATCH, run), self.options.most - run)
            events, _ = self.blocks.run(list(range(first + run, first + run + size)), {})
            more, without, others = outcomes(events, key)
            failed, passed, run = failed + more, passed + without, run + size
            key = key or _first_key(events)
            seen |= _manners(events, key)
            if others.total() > more + without:
                break
        if failed < 2:
            raise NotReproducedError(
                f"{failed} of {run} trials failed: too few to say of a smaller case that it fails as often",
                why="the failure does not replay from its seed, so that only rates can tell",
                next_step="give it more time: --budget 1h; or name a seed that fails every time: --seed N",
            )
        often = AsOften(failed=failed, passed=passed, share=self.options.share, error=self.options.error)
        least = ui.percent(often.least)
        self.say(f"{failed} of {run} fail; a smaller case is kept if it fails in {least} at least")
        trying = ByRate(
            blocks=self.blocks,
            parameters=parameters,
            key=key,
            often=often,
            next_seed=first + run,
            manners=tuple(sorted(seen)),
        )
        return trying, (failed, run)

    # During ----------------------------------------------------------------------------------------------

    def _step(
        self,
        trying: Trying,
        case: Case,
        shrinking: Shrinking,
        parameters: Sequence[Parameter],
        steps: list[Step],
    ) -> Verdict:
        before = self.blocks.seconds
        change = _told(parameters, shrinking.best, case)
        tried = trying.attempt(case)
        seconds = self.blocks.seconds - before
        steps.append(
            Step(change=change, verdict=tried.verdict, how=tried.how, trials=tried.trials, seconds=seconds)
        )
        self.say(f"{change}: {_WORDS[tried.verdict]} ({tried.how})")
        return tried.verdict

    def _dtypes(
        self, trying: Trying, shrinking: Shrinking, parameters: Sequence[Parameter], steps: list[Step]
    ) -> dict[str, bool]:
        """With which floating-point types the smallest case fails, too; it keeps its own."""
        found: dict[str, bool] = {}
        kept = trying.failure
        for one in parameters:
            own = shrinking.value(one)
            for other in _other_types(one, own):
                case = shrinking.best.having(one.key, other)
                verdict = self._step(trying, case, shrinking, parameters, steps)
                found[one.shown(other)] = verdict is not Verdict.GONE
                trying.failure = kept
            if one.kind is Kind.DTYPE:
                found[one.shown(own)] = True
        return found

    def _times(self, rate: tuple[int, int] | None) -> int:
        """Runs in the end: where rates decide, enough to see some failures."""
        if rate is None:
            return self.options.again
        return max(self.options.again, min(200, math.ceil(10 * rate[1] / rate[0])))


_WORDS = {
    Verdict.STAYS: "still fails",
    Verdict.GONE: "does not fail",
    Verdict.SAME: "has no effect",
}


def _told(parameters: Sequence[Parameter], before: Case, after: Case) -> str:
    """What differs between two cases, such as `N (test_op.py:12): 1000 to 1`."""
    told = []
    for one in parameters:
        old, new = (case.values.get(one.key, one.value) for case in (before, after))
        if old != new:
            told.append(f"{one.label}: {one.shown(old)} to {one.shown(new)}")
    return ", ".join(told)


def _other_types(parameter: Parameter, own: object) -> list[object]:
    if parameter.kind is not Kind.DTYPE:
        return []
    if parameter.choices:
        return [place for place in range(len(parameter.choices)) if place != own]
    return [name for name in _TYPES if name != own]


def _first_key(events: Sequence[object]) -> str:
    """The key of the first failure's signature."""
    for event in events:
        if isinstance(event, dict) and event.get("outcome") == "FAILED":
            return key_of(event)
    return ""


def _manners(events: Sequence[Mapping[str, Any]], key: str) -> set[str]:
    """In which manners compared values differ in failures with a signature."""
    failures = (one for one in events if one.get("outcome") == "FAILED" and key_of(one) == key)
    return {manner for one in failures for manner in manners(one)}
