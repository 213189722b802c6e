"""The trials of a block: one line before each, one after, and what failing ones drew."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from typing import Any, ContextManager, Dict, Iterator, List, Optional, Tuple

from .altering.interventions import Interventions
from .classify import classify, is_sticky, text_of
from .comparing.comparisons import Comparisons
from .comparing.mutants import Mutants
from .inputs.kept import Keeper, Replay, mismatches
from .inputs.watching import Watch
from .own_seeds import OwnSeeds
from .probe import trial as probe_trial
from .probe.calls import ending_quietly
from .probe.file import ProbeFile
from .protocol import Protocol, Ran
from .records import Event, Mode, Outcome
from .request import Request
from .seeding import Seeding
from .signature import Places, signature
from .writer import RecordFile, clean

_MESSAGE, _OUTPUT, _PROPERTIES = 4000, 4096, 32
_MISSES = "the test drew other shapes or types than the inputs that were kept"

Compared = List[Dict[str, Any]]


class Trials:
    """Runs one test once per seed."""

    def __init__(
        self,
        request: Request,
        records: RecordFile,
        seeding: Seeding,
        comparisons: Comparisons,
        places: Places,
    ) -> None:
        self._request = request
        self._records = records
        self._seeding = seeding
        self._comparisons = comparisons
        self._places = places
        self._keeper = Keeper(request.records / "inputs", 0 if request.replay else request.keep_inputs)
        self._replays: Dict[int, Replay] = {}
        self._interventions = Interventions(request.interventions)
        self._watch = Watch()
        self._own_seeds = OwnSeeds()
        self._counts: Counter[str] = Counter()

    def run(self, protocol: Protocol) -> None:
        """Run them all; stops early only where no later trial of this process could count."""
        reason = ""
        for trial, seed in enumerate(self._request.seeds, start=self._request.first_trial):
            error = self._trial(protocol, trial, seed)
            if error is not None and is_sticky(error):
                reason = "the CUDA context of this process is lost"
                break
        counts = dict(self._counts)
        self._records.write(
            Event.BLOCK_END, counts=counts, complete=not reason, reason=reason, time=time.time()
        )

    def _trial(self, protocol: Protocol, trial: int, seed: int) -> Optional[BaseException]:
        self._records.write(Event.START, trial=trial, seed=seed, time=time.time())
        began = time.perf_counter()
        replay = self._replay(seed)
        ran, compared, end = self._once(protocol, seed, replay)
        end["total"] = time.perf_counter() - began
        libraries = self._own_seeds.look(seed) if self._request.mode is Mode.SEEDS else []
        self._counts[end["outcome"]] += 1
        self._records.write(Event.END, trial=trial, seed=seed, time=time.time(), **end)
        if libraries:
            self._records.write(Event.OWN_SEEDS, libraries=libraries, time=time.time())
        if end["outcome"] == Outcome.FAILED.value and self._keeper.wants(seed):
            self._keep(protocol, trial, seed, compared)
        if self._request.probe is not None:
            self._look_into(protocol, trial, seed, end)
        return ran.error

    def _once(
        self,
        protocol: Protocol,
        seed: int,
        replay: Optional[Replay],
        inside: Optional[ContextManager[Any]] = None,
    ) -> Tuple[Ran, Compared, Dict[str, Any]]:
        self._seeding.seed(replay.seed if replay else seed)
        ran, compared = self._run(protocol, replay, inside)
        end = self._end(ran, compared)
        if replay is not None and replay.misses(passed=ran.error is None):
            end = {"outcome": Outcome.OTHER_INPUTS.value, "duration": ran.duration, "message": _MISSES}
        return ran, compared, end

    def _look_into(self, protocol: Protocol, trial: int, seed: int, end: Dict[str, Any]) -> None:
        """Run a trial again under the probe, as often as that takes."""
        assert self._request.probe is not None
        replay, mode = self._replay(seed), self._request.mode.value
        file = ProbeFile(self._request.records / "probe.jsonl", self._request.probe)

        def run(inside: ContextManager[Any]) -> Dict[str, Any]:
            self._records.write(Event.RERUN, trial=trial, seed=seed, time=time.time())
            return self._once(protocol, seed, replay, inside)[2]

        probe_trial.begin(file, replay.seed if replay else seed, mode)
        with ending_quietly(protocol.item):
            probe_trial.look_into(run, self._comparisons, file, self._request.probe, end)

    def _replay(self, seed: int) -> Optional[Replay]:
        path = self._request.replay.get(seed)
        if path is None:
            return None
        if seed not in self._replays:
            self._replays[seed] = Replay(path)
        return self._replays[seed]

    def _run(
        self, protocol: Protocol, replay: Optional[Replay], inside: Optional[ContextManager[Any]] = None
    ) -> Tuple[Ran, Compared]:
        self._comparisons.begin()
        given = replay.context() if replay else contextlib.nullcontext()
        with self._circumstances(), given, inside or contextlib.nullcontext():
            ran = protocol.run()
        return ran, self._comparisons.end()

    @contextlib.contextmanager
    def _circumstances(self) -> Iterator[None]:
        """What was asked for around each trial; nothing at all, usually."""
        if not self._request.interventions and not self._request.watch:
            yield
            return
        mutants = Mutants()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._interventions.around())
            if self._request.watch:
                stack.enter_context(self._watch.around())
                stack.enter_context(self._comparisons.observed_by(mutants.note))
            yield
        told = {"touched": self._interventions.touched, "drawn": self._watch.drawn, "mutants": mutants.found}
        self._records.write(Event.CIRCUMSTANCES, **told)

    def _keep(self, protocol: Protocol, trial: int, seed: int, compared: Compared) -> None:
        """Run a failing seed again, under recording. Trials themselves never pay for that."""
        self._records.write(Event.RERUN, trial=trial, seed=seed, time=time.time())
        self._seeding.seed(seed)
        draws, states, context = self._keeper.recording(seed)
        with context:
            ran, again = self._run(protocol, None)
        end = self._end(ran, again)
        failed = mismatches(compared)
        self._records.write(
            Event.INPUTS,
            trial=trial,
            seed=seed,
            **self._keeper.save(seed, draws, states),
            failed_again=end["outcome"] == Outcome.FAILED.value,
            same_elements=failed == mismatches(again) if failed else None,
        )

    def _end(self, ran: Ran, compared: Compared) -> Dict[str, Any]:
        """The fields of an `end` line."""
        end: Dict[str, Any] = {"outcome": Outcome.PASSED.value, "duration": ran.duration}
        if ran.error is not None:
            end.update(self._failure(ran.error, ran))
        if compared:
            end["comparisons"] = compared
        if ran.properties:
            end["properties"] = _bounded(ran.properties)
        return end

    def _failure(self, error: BaseException, ran: Ran) -> Dict[str, Any]:
        culprit = self._comparisons.culprit(error)
        signed = {"place": ran.place, **signature(error, self._places, culprit)}
        outcome = classify(error, ran.place, signed, self._request.target)
        output = {"output": clean(ran.output, _OUTPUT, keep_end=True)} if ran.output else {}
        message = clean(text_of(error), _MESSAGE)
        return {"outcome": outcome.value, "signature": signed, "message": message, **output}


def _bounded(properties: List[Tuple[str, Any]]) -> Dict[str, Any]:
    plain = (bool, int, float, type(None))
    return {
        clean(str(name), 100): value if isinstance(value, plain) else clean(str(value), 500)
        for name, value in properties[:_PROPERTIES]
    }
