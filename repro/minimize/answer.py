"""The smallest case, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repro.inspect.records import Probe
from repro.minimize.case import Case, Parameter, changed
from repro.minimize.gradients import gradients_to_json
from repro.minimize.shrink import Verdict
from repro.minimize.trying import Failure
from repro.stats import wilson


@dataclass(frozen=True, kw_only=True)
class Step:
    """One case that was tried.

    Args:
        change: what was changed against the smallest case so far.
        verdict: what became of it.
        how: in what way the failure came about, or why it is gone.
        trials: that were run for it.
        seconds: that its processes took.
    """

    change: str
    verdict: Verdict
    how: str
    trials: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Minimized:
    """The smallest case that still fails.

    Args:
        cell, revision, test: what was tried.
        key: of the signature that stayed.
        by: `inputs`, `seeds` or `rate`: what stands for the failure.
        rate: of the case as the test file has it, as (failed, run), where rates decide.
        case: the smallest one.
        parameters: all that the case is made of.
        without_effect: parameters that change nothing.
        failure: of the smallest case; None where rates decide.
        dtypes: by the name of a type, whether the smallest case fails with it, too.
        steps: every case that was tried.
        trials, processes: how many it took.
        seconds: that they took.
        complete: whether nothing gets smaller; False where time was up.
        again: (failed, run) of the smallest case, once more in the end.
        gradients: of the smallest case, held against differences; None where it compares none.
    """

    cell: str
    revision: str
    test: str
    key: str
    by: str
    rate: tuple[int, int] | None
    case: Case
    parameters: Sequence[Parameter]
    without_effect: Sequence[Parameter]
    failure: Failure | None
    dtypes: Mapping[str, bool]
    steps: Sequence[Step]
    trials: int
    processes: int
    seconds: float
    complete: bool
    again: tuple[int, int]
    gradients: Probe | None = None

    @property
    def record(self) -> Mapping[str, Any]:
        """What the process of the smallest case recorded of its failure."""
        return self.failure.record if self.failure is not None else {}

    @property
    def changes(self) -> list[tuple[Parameter, Any]]:
        """What differs from the test file, with the new values."""
        return changed(self.parameters, self.case)


def to_json(found: Minimized) -> dict[str, Any]:
    """All of it as plain values; `arguments`, `constants` and `inputs` are what a request takes."""
    record, failure = found.record, found.failure
    inputs = failure.inputs if failure is not None else None
    return {
        "cell": found.cell,
        "subject": found.revision,
        "test": found.test,
        "signature": found.key,
        "by": found.by,
        "rate": _rate(found.rate) if found.rate else None,
        "seed": failure.seed if failure is not None else None,
        **found.case.request(found.parameters),
        "changes": [_change(one, new) for one, new in found.changes],
        "unchanged": [_change(one, one.value) for one in found.parameters if _unchanged(found, one)],
        "without_effect": [one.label for one in found.without_effect],
        "dtypes": dict(found.dtypes),
        "inputs": f"inputs/{inputs.file.name}" if inputs is not None and inputs.file is not None else None,
        "left": record.get("left"),
        "drawn": record.get("drawn"),
        "elements": record.get("elements", []),
        "draws": record.get("draws", []),
        "message": record.get("message", ""),
        "gradients": gradients_to_json(found.gradients),
        "steps": [_step(step) for step in found.steps],
        "trials": found.trials,
        "processes": found.processes,
        "seconds": round(found.seconds, 1),
        "complete": found.complete,
        "again": _rate(found.again),
    }


def _unchanged(found: Minimized, parameter: Parameter) -> bool:
    return parameter not in found.without_effect and parameter not in [one for one, _ in found.changes]


def _change(parameter: Parameter, new: Any) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "where": "" if parameter.argument else parameter.key,
        "kind": parameter.kind.value,
        "from": parameter.shown(parameter.value),
        "to": parameter.shown(new),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "change": step.change,
        "verdict": step.verdict.value,
        "how": step.how,
        "trials": step.trials,
        "seconds": round(step.seconds, 1),
    }


def _rate(counts: tuple[int, int]) -> dict[str, int | float | None]:
    return wilson(*counts).to_json()
