"""What a probe says, in tables and sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from repro.inspect.marks import marks
from repro.inspect.parting import Parting
from repro.inspect.records import Derivative, Gradcheck, Precision, Probe, Step
from repro.ui import count

Row = tuple[str, ...]

STEPS = (
    *("step>", "phase", "operation", "shape", "NaN>", "Inf>", "min>", "max>", "mean |x|>", "growth>"),
    *("error, ulp>", "cancels>", ""),
)
PRECISIONS = (
    *(
        "comparison>",
        "element",
        "actual>",
        "expected>",
        "float64>",
        "actual, ulp>",
        "expected, ulp>",
        "inputs, ulp>",
        "wrong",
    ),
)
DERIVATIVES = (
    *("comparison>", "element", "of", "actual>", "expected>", "left>", "right>", "±>", "jump"),
    *("actual fits", "expected fits"),
)
_HEAD, _TAIL = 4, 2


def step_rows(probe: Probe, most: int) -> list[Row]:
    """The steps, what stands out marked in words.

    Args:
        probe: whose.
        most: rows; the marked steps, the first and the last ones, and then as many from the start; 0 for all.
    """
    told: dict[int, list[str]] = {}
    for mark in marks(probe.steps):
        told.setdefault(mark.step.n, []).append(mark.what)
    kept = set(range(len(probe.steps)))
    if most and len(probe.steps) > most:
        ends = {*range(_HEAD), *range(len(probe.steps) - _TAIL, len(probe.steps))}
        kept = ends | {place for place, step in enumerate(probe.steps) if step.n in told}
        kept |= set(sorted(set(range(len(probe.steps))) - kept)[: max(0, most - len(kept))])
    rows: list[Row] = []
    for place, step in enumerate(probe.steps):
        if place in kept:
            rows.append(_step(step, ", ".join(told.get(step.n, [])) or step.note))
        elif place - 1 in kept:
            rows.append(("…", *([""] * (len(STEPS) - 1))))
    return rows


def _step(step: Step, note: str) -> Row:
    shape = "×".join(map(str, step.shape)) or "1"
    return (
        str(step.n),
        step.phase,
        step.op.removeprefix("aten."),
        f"{shape} {step.dtype}",
        str(step.nan or "-"),
        str(step.inf or "-"),
        number(step.min),
        number(step.max),
        number(step.mean_abs),
        number(step.growth),
        number(step.error.max_ulp if step.error else None),
        number(step.cancellation),
        note,
    )


def precision_rows(found: Sequence[Precision]) -> list[Row]:
    """Failing elements, and then how many passing ones are wrong by the same measure."""
    return [
        (
            str(one.comparison),
            index(one.element) + (" (passes)" if one.control else ""),
            value(one.actual),
            value(one.expected),
            value(one.truth),
            number(one.actual_ulp),
            number(one.expected_ulp),
            number(one.inputs_ulp),
            one.wrong or "?",
        )
        for one in found
    ]


def derivative_rows(found: Sequence[Derivative]) -> list[Row]:
    """Compared gradients beside the derivatives on both sides."""
    return [
        (
            str(one.comparison),
            index(one.element or ()) + (" (passes)" if one.control else ""),
            one.side,
            value(one.actual),
            value(one.expected),
            value(one.left),
            value(one.right),
            number(one.noise),
            {True: "yes", False: "no", None: "?"}[one.jump],
            one.actual_fits or "?",
            one.expected_fits or "?",
        )
        for one in found
        if one.why is None
    ]


def sentences(probe: Probe) -> list[str]:
    """What the probe comes to, and what it could not see."""
    end, told = probe.end, []
    if end is None:
        return ["the process died under the probe: what it wrote until then is all there is"]
    if not end.same_outcome:
        told.append(
            f"under the probe the trial came to {end.outcome}, without it to {end.original}: "
            "what is shown may not be what fails"
        )
    elif end.outcome != "FAILED":
        told.append(
            f"the trial came to {end.outcome}, with the probe and without: try another seed, or"
            " `repro diagnose`, which says whether the seed decides"
        )
    if not probe.steps and not end.trouble:
        told.append("the trial did no operation of torch, so there are no numbers to look at")
    told += [f"{mark.what}: step {mark.step.n}, {mark.step.op}" for mark in marks(probe.steps)]
    told += _precision(probe.precisions) + _derivative(probe.derivatives)
    told += [_gradcheck(one) for one in probe.gradchecks]
    if end.trouble:
        told.append(end.trouble)
    if end.truncated:
        told.append("not everything was written or measured: there was too much of it, or too little time")
    return told


def _precision(found: Sequence[Precision]) -> list[str]:
    failing = [one for one in found if not one.control]
    counts = Counter(one.wrong for one in failing if one.wrong)
    words = {
        "actual": "the actual side is wrong",
        "expected": "the expected side is wrong",
        "both": "both sides are wrong",
        "neither": "neither side is wrong by more than the tolerance",
    }
    told = [
        f"against float64, {words[wrong]} at {n} of {count(len(failing), 'failing element')}"
        for wrong, n in counts.most_common()
    ]
    whys = Counter(one.why for one in failing if one.why)
    return told + [
        f"no float64 value for {count(n, 'failing element')}: {why}" for why, n in whys.most_common(3)
    ]


def _derivative(found: Sequence[Derivative]) -> list[str]:
    failing = [one for one in found if not one.control]
    measured = {_place(one) for one in failing if one.why is None}
    jumps = {_place(one) for one in failing if one.jump}
    told = []
    if jumps:
        told.append(
            f"the derivative jumps at {len(jumps)} of {count(len(measured), 'failing element')} measured"
        )
    for side in ("actual", "expected"):
        fits = [
            one for one in failing if (one.actual_fits if side == "actual" else one.expected_fits) == "none"
        ]
        if wrong := {_place(one) for one in fits}:
            told.append(
                f"the {side} gradient is the derivative on neither side at {len(wrong)} of {len(measured)} "
                "failing elements measured"
            )
    whys = Counter(one.why for one in failing if one.why)
    return told + [
        f"no derivative for {count(n, 'failing element')}: {why}" for why, n in whys.most_common(3)
    ]


def gradient_sentences(probe: Probe) -> list[str]:
    """What differences and gradcheck say of the compared gradients."""
    return _derivative(probe.derivatives) + [_gradcheck(one) for one in probe.gradchecks]


def _gradcheck(one: Gradcheck) -> str:
    of = f" of {one.of}" if one.of > one.elements else ""
    told = f"torch.autograd.gradcheck of the {one.side} gradient in comparison {one.comparison}"
    if one.passed is None:
        return f"{told}: not run, {one.why or 'it left no answer'}"
    if one.passed:
        return f"{told}: passes at all {one.elements}{of} elements"
    if not one.apart:
        return f"{told}: fails ({one.message})"
    first = one.apart[0]
    return (
        f"{told}: fails at {len(one.apart)} of {one.elements} elements; {index(first.element)} is "
        f"{value(first.analytical)}, by differences {value(first.numerical)}"
    )


def _place(one: Derivative) -> tuple[object, ...]:
    return one.comparison, one.element


def parting_sentences(found: Parting, here: str, there: str) -> list[str]:
    """Where two cells part, in words."""
    if found.identical:
        return [f"all {found.matched} steps are the same in {here} and {there}, to the last bit"]
    told = [f"{found.matched} steps match; {found.here} are in {here} alone, {found.there} in {there} alone"]
    if found.bits is None:
        told.append("those that match are the same to the last bit")
    else:
        told.append(f"the first that differs in its bits: {_pair(*found.bits)}")
    if found.numbers is not None:
        told.append(f"the first that differs by more than rounding: {_pair(*found.numbers)}")
    if found.path is not None:
        told.append(f"the first that one of them alone takes: {found.path.op} (step {found.path.n})")
    return told


def _pair(one: Step, other: Step) -> str:
    return (
        f"step {one.n} and {other.n}, {one.op}: min {number(one.min)} and {number(other.min)}, "
        f"max {number(one.max)} and {number(other.max)}, NaN {one.nan} and {other.nan}"
    )


def number(value: float | None) -> str:
    """Three digits."""
    return "-" if value is None else f"{value:.3g}"


def value(found: float | None) -> str:
    """Nine digits: enough to tell two float32 apart."""
    return "-" if found is None else f"{found:.9g}"


def index(element: Sequence[int]) -> str:
    """Such as `[1, 0, 3]`."""
    return f"[{', '.join(map(str, element))}]"
