"""Trials that an adapter looks at: which jumps of a derivative lie next to failing elements."""

from __future__ import annotations

import math
import sys
from typing import Any, ContextManager, Dict, List, Mapping, Optional, Tuple

from ..comparing.measure_numbers import unravel
from ..comparing.measure_torch import leaves_of, tolerances_of
from ..inputs.kept import Replay
from ..protocol import Protocol, Ran
from ..trials import Trials
from ..writer import RecordFile
from .calls import Adapter, BadAdapter, Call, Calls, load_adapter


class _Kind:
    """The name of an event, as `RecordFile` wants it."""

    def __init__(self, value: str) -> None:
        self.value = value


class AdapterFile:
    """`adapter.jsonl`, one JSON object a line: `jump`, `predicted`, `trouble` where something is amiss."""

    def __init__(self, records: RecordFile) -> None:
        self._records = records

    def write(self, event: str, **fields: Any) -> None:
        """Append one event."""
        kind: Any = _Kind(event)
        self._records.write(kind, **fields)


class Adapting(Trials):
    """Runs one test once per seed, and asks the adapter about the gradients that it compares."""

    def run(self, protocol: Protocol) -> None:
        """See `Trials.run`; without a usable adapter nothing is run."""
        assert self._request.adapter is not None
        self._file = AdapterFile(RecordFile(self._request.records / "adapter.jsonl"))
        self._seed = 0
        try:
            self._adapter = load_adapter(self._request.adapter.name, self._request.adapter.source)
        except BadAdapter as error:
            self._file.write("trouble", seed=None, message=str(error))
            return
        super().run(protocol)

    def _trial(self, protocol: Protocol, trial: int, seed: int) -> Optional[BaseException]:
        self._seed = seed
        return super()._trial(protocol, trial, seed)

    def _run(
        self, protocol: Protocol, replay: Optional[Replay], inside: Optional[ContextManager[Any]] = None
    ) -> Tuple[Ran, List[Dict[str, Any]]]:
        assert self._request.adapter is not None
        seed, torch = self._seed, sys.modules.get("torch")
        if torch is None:
            self._file.write("trouble", seed=seed, message="the test loads no torch")
            return super()._run(protocol, replay, inside)
        calls = Calls(torch, self._adapter)
        asked = Asked(torch, self._adapter, calls, self._file, seed, self._request.adapter.elements)
        with self._comparisons.observed_by(asked.note), calls.watching():
            ran, compared = super()._run(protocol, replay, inside)
        asked.end()
        return ran, compared


class Asked:
    """What the adapter is asked in one trial.

    Args:
        torch: the module.
        adapter: that is asked.
        calls: of the operator.
        file: takes the answers.
        seed: of the trial.
        most: failing elements of a comparison, at most.
    """

    def __init__(
        self, torch: Any, adapter: Adapter, calls: Calls, file: AdapterFile, seed: int, most: int
    ) -> None:
        self._torch, self._adapter, self._calls = torch, adapter, calls
        self._file, self._seed, self._most = file, seed, most
        self._predicted = False

    def note(self, index: int, where: str, bound: Mapping[str, Any], passed: bool) -> None:
        """A comparison was made."""
        pair = (bound.get("actual", bound.get("input")), bound.get("expected", bound.get("other")))
        for leaf, (_, actual, expected) in enumerate(leaves_of(*pair)):
            try:
                self._pair({"comparison": index, "leaf": leaf}, actual, expected, bound, passed)
            except Exception as error:  # an adapter's fault is no outcome of the test
                self._trouble(f"comparison {index}: {type(error).__name__}: {error}"[:500])

    def end(self) -> None:
        """Say why nothing could be asked, if so."""
        if self._calls.trouble:
            self._trouble(self._calls.trouble)
        if not self._calls.seen:
            names = ", ".join(self._adapter.functions)
            self._trouble(f"the test called no function named {names} with these arguments")

    def _pair(
        self, place: Dict[str, Any], actual: Any, expected: Any, bound: Mapping[str, Any], passed: bool
    ) -> None:
        if not all(isinstance(one, self._torch.Tensor) for one in (actual, expected)):
            return
        if actual.shape != expected.shape or not actual.is_floating_point():
            return
        call, name = self._owner(actual, expected)
        if call is None or name is None:
            return
        atol, rtol = tolerances_of(self._torch, bound, actual, expected)
        if name in self._adapter.coordinates:
            self._predict(call, name, atol, rtol)
        if passed:
            return
        for element in self._failing(actual, expected, atol, rtol, bool(bound.get("equal_nan"))):
            for jump in self._adapter.jumps(call.known, name, element):
                self._file.write(
                    "jump", seed=self._seed, **place, argument=name, element=list(element), **jump
                )

    def _owner(self, actual: Any, expected: Any) -> Tuple[Optional[Call], Optional[str]]:
        """The call and the argument whose gradient one side of the pair is."""
        for compared in (actual, expected):
            for call in self._calls.seen:
                name = call.owner(self._torch, compared)
                if name is not None:
                    return call, name
        return None, None

    def _predict(self, call: Call, name: str, atol: float, rtol: float) -> None:
        """Once a trial."""
        if self._predicted or self._adapter.predicted_rate is None or call.grad_out is None:
            return
        self._predicted = True
        rate = float(self._adapter.predicted_rate(call.known, {"atol": atol, "rtol": rtol}))
        self._file.write("predicted", seed=self._seed, argument=name, rate=rate, atol=atol, rtol=rtol)

    def _failing(
        self, actual: Any, expected: Any, atol: float, rtol: float, equal_nan: bool
    ) -> List[Tuple[int, ...]]:
        """Indexes of elements that are not close, the furthest apart first."""
        with self._torch.no_grad():
            ours, theirs = (one.detach().double().reshape(-1) for one in (actual, expected.to(actual.device)))
            close = self._torch.isclose(ours, theirs, rtol=rtol, atol=atol, equal_nan=equal_nan)
            excess = ((ours - theirs).abs() - (atol + rtol * theirs.abs())).nan_to_num(math.inf)
            failing = (~close).nonzero().flatten()
            worst = excess[failing].topk(min(self._most, failing.numel())).indices
            return [tuple(unravel(place, list(actual.shape))) for place in failing[worst].tolist()]

    def _trouble(self, message: str) -> None:
        self._file.write("trouble", seed=self._seed, message=message)
