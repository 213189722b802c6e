"""Probes as plain values, for JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from repro.inspect.marks import marks
from repro.inspect.parting import Parting
from repro.inspect.records import Probe, Step


def probe_to_json(probe: Probe) -> dict[str, Any]:
    """All of a probe; NaN and infinities are texts, as in the file."""
    told = {
        "begin": asdict(probe.begin),
        "end": None if probe.end is None else asdict(probe.end),
        "marks": [{"step": mark.step.n, "what": mark.what} for mark in marks(probe.steps)],
        "steps": [asdict(step) for step in probe.steps],
        "precisions": [asdict(one) for one in probe.precisions],
        "derivatives": [asdict(one) for one in probe.derivatives],
        "gradchecks": [asdict(one) for one in probe.gradchecks],
    }
    return {name: finite(value) for name, value in told.items()}


def parting_to_json(found: Parting) -> dict[str, Any]:
    """Where two probes part, steps by their numbers in each."""
    return {
        "identical": found.identical,
        "matched": found.matched,
        "alone": {"here": found.here, "there": found.there},
        "bits": _pair(found.bits),
        "numbers": _pair(found.numbers),
        "path": None if found.path is None else {"op": found.path.op, "step": found.path.n},
    }


def _pair(pair: tuple[Step, Step] | None) -> dict[str, Any] | None:
    return None if pair is None else {"op": pair[0].op, "here": pair[0].n, "there": pair[1].n}


def finite(value: Any) -> Any:
    """The same with "nan", "inf" and "-inf" for what JSON has no numbers for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
