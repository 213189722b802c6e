"""What a probe wrote down, read back: the lines of `probe.jsonl` as records.

Values that are no numbers to JSON ("nan", "inf", "-inf") are floats again here. Fields that this version does
not know are left out, and those that a line lacks have their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from repro.store.sound import without_controls
from repro.trial.reader import read_events


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """How far a step's output is from the same operations in float64."""

    max_ulp: float = 0.0
    median_ulp: float = 0.0
    max_relative: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Step:
    """One output of one operation.

    Args:
        n: number of the step, from 0.
        op: such as `aten.mul.Tensor`, or `triton.NAME` for what a kernel wrote.
        phase: "forward" or "backward".
        out: which of the operation's outputs.
        shape, dtype, size: of the output.
        nan, inf, zero, subnormal: counts of elements.
        min, max, mean_abs: of the finite elements; None where there are none.
        quantiles: 1, 25, 50, 75 and 99 %, of a sample of the finite elements.
        growth: largest magnitude of the output over that of the inputs, or None.
        digest: SHA-1 of the bytes.
        error: against float64, or None where the operation has no float64 version.
        cancellation: of an addition or subtraction, the largest input over output of any element, or None.
        note: what cannot be said of the step, and why.
    """

    n: int = 0
    op: str = ""
    phase: str = "forward"
    out: int = 0
    shape: tuple[int, ...] = ()
    dtype: str = ""
    size: int = 0
    nan: int = 0
    inf: int = 0
    zero: int = 0
    subnormal: int = 0
    min: float | None = None
    max: float | None = None
    mean_abs: float | None = None
    quantiles: tuple[float, ...] = ()
    growth: float | None = None
    digest: str = ""
    error: Rounding | None = None
    cancellation: float | None = None
    note: str = ""

    @property
    def largest(self) -> float | None:
        """The largest magnitude among the finite elements."""
        return None if self.min is None or self.max is None else max(abs(self.min), abs(self.max))


@dataclass(frozen=True, kw_only=True)
class Precision:
    """One element of a comparison, held against float64.

    Args:
        comparison: index of the comparison in the trial.
        where: file, function and line of the call.
        element: index of the element.
        control: whether it is a passing element, taken for comparison's sake.
        actual, expected: as compared.
        truth: the value in float64, or None.
        actual_float64, expected_float64: what each side's own operations give in float64, or None.
        actual_ulp, expected_ulp: errors in units of the last place of the compared type.
        inputs_ulp: how far rounding of the inputs alone moves the truth, in the same units, or None.
        wrong: "actual", "expected", "both" or "neither": which side is further from the truth than the
            comparison tolerates; None where there is no truth.
        why: why there is no truth.
    """

    comparison: int = 0
    where: str = ""
    element: tuple[int, ...] = ()
    control: bool = False
    actual: float | None = None
    expected: float | None = None
    truth: float | None = None
    actual_float64: float | None = None
    expected_float64: float | None = None
    actual_ulp: float | None = None
    expected_ulp: float | None = None
    inputs_ulp: float | None = None
    wrong: str | None = None
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class Quotient:
    """Difference quotients for one step `h`."""

    h: float = 0.0
    left: float | None = None
    right: float | None = None


@dataclass(frozen=True, kw_only=True)
class Derivative:
    """One element of a compared gradient, held against differences of the function itself.

    Args:
        comparison: index of the comparison in the trial.
        side: "actual" or "expected": whose function and whose input were measured.
        leaf: number of the input among the trial's, in the order of their first use; None if not known.
        element: index of the element; None where nothing was measured.
        control: whether it is a passing element.
        actual, expected: the gradients as compared.
        left, right, central: the derivative to either side, extrapolated to a step of 0, and their mean.
        steps: what was measured, for each step.
        jump: whether left and right disagree; None where the noise hides it.
        actual_fits, expected_fits: "left", "right", "both" or "none"; None where the noise hides it.
        noise: standard error of left and right.
        why: why nothing was measured.
    """

    comparison: int = 0
    side: str = "actual"
    leaf: int | None = None
    element: tuple[int, ...] | None = None
    control: bool = False
    actual: float | None = None
    expected: float | None = None
    left: float | None = None
    right: float | None = None
    central: float | None = None
    steps: tuple[Quotient, ...] = ()
    jump: bool | None = None
    actual_fits: str | None = None
    expected_fits: str | None = None
    noise: float | None = None
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class Apart:
    """An element of a gradient that gradcheck objects to.

    Args:
        element: index of the element in the input.
        numerical: derivative by differences.
        analytical: gradient as compared.
    """

    element: tuple[int, ...] = ()
    numerical: float | None = None
    analytical: float | None = None


@dataclass(frozen=True, kw_only=True)
class Gradcheck:
    """What `torch.autograd.gradcheck` says of one side of a comparison of gradients.

    Args:
        comparison: index of the comparison in the trial.
        side: "actual" or "expected": whose gradient was checked.
        leaf: number of the input among the trial's.
        elements: of the gradient that were checked.
        of: as many there are.
        passed: whether it did not object; None where it could not run.
        message: its own.
        eps: how far each element was moved to either side.
        rtol, atol: that it was given: its own for float64, wider for narrower types and noise.
        apart: elements that it objects to; not all where they are many.
        why: why it could not run.
    """

    comparison: int = 0
    side: str = "actual"
    leaf: int | None = None
    elements: int = 0
    of: int = 0
    passed: bool | None = None
    message: str = ""
    eps: float | None = None
    rtol: float | None = None
    atol: float | None = None
    apart: tuple[Apart, ...] = ()
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class Begin:
    """What was probed; `torch` is "" where the test loads none, `device` "cpu" or "cuda"."""

    seed: int = 0
    mode: str = "seeds"
    torch: str = ""
    device: str = "cpu"


@dataclass(frozen=True, kw_only=True)
class End:
    """How the probe ended.

    Args:
        outcome: of the trial under the probe.
        original: of the trial as it is, in the same process just before.
        same_outcome: whether the two are the same.
        steps: that were taken, those left out of the file among them.
        truncated: whether steps, elements or differences were left out for room or time.
        seconds: of wall clock.
        message: what the trial under the probe failed with, or "".
        trouble: what kept the probe from seeing all, or "".
    """

    outcome: str = ""
    original: str = ""
    same_outcome: bool = True
    steps: int = 0
    truncated: bool = False
    seconds: float = 0.0
    message: str = ""
    trouble: str = ""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One trial, looked into. `end` is None where its process died."""

    steps: Sequence[Step] = ()
    precisions: Sequence[Precision] = ()
    derivatives: Sequence[Derivative] = ()
    gradchecks: Sequence[Gradcheck] = ()
    begin: Begin = Begin()
    end: End | None = None


def read(path: Path) -> Probe:
    """Read `probe.jsonl`, whole or cut off; an absent file is a probe without anything."""
    steps: list[Step] = []
    precisions: list[Precision] = []
    derivatives: list[Derivative] = []
    gradchecks: list[Gradcheck] = []
    begin, end = Begin(), None
    for event in read_events(path):
        made = _made(event)
        if isinstance(made, Step):
            steps.append(made)
        elif isinstance(made, Precision):
            precisions.append(made)
        elif isinstance(made, Derivative):
            derivatives.append(made)
        elif isinstance(made, Gradcheck):
            gradchecks.append(made)
        elif isinstance(made, Begin):
            begin = made
        elif isinstance(made, End):
            end = made
    return Probe(
        steps=steps,
        precisions=precisions,
        derivatives=derivatives,
        gradchecks=gradchecks,
        begin=begin,
        end=end,
    )


_Record = TypeVar("_Record")
_EVENTS: Mapping[str, type] = {
    "step": Step,
    "precision": Precision,
    "derivative": Derivative,
    "gradcheck": Gradcheck,
    "begin": Begin,
    "end": End,
}
_NO_NUMBERS = ("nan", "inf", "-inf")


def _made(event: Mapping[str, Any]) -> object:
    """The record that a line holds, or None where it holds none: the subject can write there, too."""
    try:
        return _record(_EVENTS[event["event"]], without_controls(event))
    except (ValueError, KeyError):
        return None


def _record(kind: type[_Record], event: Mapping[str, Any]) -> _Record:
    """A record out of a line's fields; raises ValueError where one has another type than it should."""
    values = {}
    for name, hint in _hints(kind.__name__).items():
        if event.get(name) is not None:
            values[name] = _value(hint, event[name])
    return kind(**values)


@cache
def _hints(kind: str) -> dict[str, Any]:
    return get_type_hints(globals()[kind])


def _value(hint: Any, value: Any) -> Any:
    if isinstance(hint, UnionType):  # such as `float | None`; null is left out before
        hint = next(each for each in get_args(hint) if each is not type(None))
    if is_dataclass(hint) and isinstance(value, dict):
        return _record(cast(type, hint), value)
    if get_origin(hint) is tuple and isinstance(value, list):
        return tuple(_value(get_args(hint)[0], item) for item in value)
    if hint is float and (value in _NO_NUMBERS or type(value) in (int, float)):
        return _float(value)
    if type(value) is not hint:
        raise ValueError(f"{value!r:.40} is no {hint}")
    return value


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a number beyond all floats") from None
