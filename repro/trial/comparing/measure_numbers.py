"""Measures how far two numbers or two numpy arrays are apart; records look as those of tensors do."""

from __future__ import annotations

import hashlib
import math
from typing import Any, Dict, List, Optional

WORST = 16
"""The number of mismatched elements that a record names."""
CHUNK = 2**20
"""Elements that are measured at a time: bounds the memory that measuring takes."""


def unravel(flat: int, shape: List[int]) -> List[int]:
    """The index of element number `flat` of an array in C order."""
    index = []
    for length in reversed(shape):
        flat, at = divmod(flat, length)
        index.append(at)
    return index[::-1]


def measure_numbers(actual: float, expected: float, atol: float, rtol: float) -> Dict[str, Any]:
    """Measure two plain numbers."""
    ours, theirs = float(actual), float(expected)
    same = ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    error = 0.0 if same else abs(ours - theirs)
    error = math.inf if math.isnan(error) else error
    tolerance = atol + rtol * abs(theirs)
    at = {"index": [], "actual": ours, "expected": theirs}
    mismatched = not same and not (error <= tolerance and math.isfinite(error))
    record = {
        "dtype": type(actual).__name__,
        "shape": [],
        "size": 1,
        "atol": atol,
        "rtol": rtol,
        "max_abs": error,
        "max_abs_at": at,
        "max_rel": error / abs(theirs) if theirs and math.isfinite(error) else 0.0,
        "max_rel_at": at,
        "ratio": 0.0 if same else error / tolerance if tolerance else math.inf,
        "nan": [int(math.isnan(ours)), int(math.isnan(theirs))],
        "inf": [int(math.isinf(ours)), int(math.isinf(theirs))],
        "mismatched": int(mismatched),
    }
    return {**record, "worst": [at]} if mismatched else record


def measure_agreeing(
    numpy: Any, x: Any, y: Any, atol: float, rtol: float, shape: List[int]
) -> Optional[Dict[str, Any]]:
    """Measure two flat arrays of floats that were found close, in few steps.

    None where an infinity or a NaN is in them: these take `measure_arrays`, which looks at each.
    """
    with numpy.errstate(all="ignore"):
        error = numpy.abs(x - y)
        at = int(error.argmax())  # the first NaN, if there is one
        if not math.isfinite(error.item(at)):
            return None
        size = numpy.abs(y)
        relative = error / size
        relative_at = int(relative.argmax())
        if not math.isfinite(relative.item(relative_at)):
            relative[size == 0.0] = 0.0  # relative to zero, nothing can be said
            relative_at = int(relative.argmax())
        size *= rtol
        size += atol
        error /= size
        ratio = float(error.max())
        if math.isnan(ratio):  # 0 of a tolerance of 0
            ratio = float(numpy.fmax.reduce(error, initial=0.0))
    worst = abs(x.item(at) - y.item(at))
    base = abs(y.item(relative_at))
    return {
        "max_abs": worst,
        "max_abs_at": {"index": unravel(at, shape), "actual": x.item(at), "expected": y.item(at)},
        "max_rel": abs(x.item(relative_at) - y.item(relative_at)) / base if base else 0.0,
        "max_rel_at": {
            "index": unravel(relative_at, shape),
            "actual": x.item(relative_at),
            "expected": y.item(relative_at),
        },
        "ratio": ratio,
        "nan": [0, 0],
        "inf": [0, 0],
        "mismatched": 0,
    }


def measure_arrays(
    numpy: Any, actual: Any, expected: Any, atol: float, rtol: float, equal_nan: bool, passed: bool
) -> Dict[str, Any]:
    """Measure two arrays, broadcast as numpy's comparisons do; in float64 and in chunks."""
    ours, theirs = numpy.asarray(actual), numpy.asarray(expected)
    record: Dict[str, Any] = {"dtype": str(ours.dtype), "atol": atol, "rtol": rtol}
    if not all(array.dtype.kind in "biufc" for array in (ours, theirs)):
        return {**record, "unmeasured": f"{ours.dtype} against {theirs.dtype}"}
    ours, theirs = numpy.broadcast_arrays(ours, theirs)
    shape = list(ours.shape)
    record.update(shape=shape, size=int(ours.size), mismatched=0)
    if not ours.size:
        return record
    ours, theirs = ours.reshape(-1), theirs.reshape(-1)
    if passed and ours.size <= CHUNK and "c" not in (ours.dtype.kind, theirs.dtype.kind):
        x, y = (array.astype(numpy.float64) for array in (ours, theirs))
        agreed = measure_agreeing(numpy, x, y, atol, rtol, shape)
        if agreed is not None:
            return {**record, **agreed}
    parts = [
        _part(numpy, ours[i : i + CHUNK], theirs[i : i + CHUNK], i, atol, rtol, equal_nan)
        for i in range(0, ours.size, CHUNK)
    ]
    for name in ("max_abs", "max_rel"):
        best = max((part[name] for part in parts), key=lambda one: one["error"])
        record[name] = best.pop("error")
        record[f"{name}_at"] = {**best, "index": unravel(best["index"], shape)}
    record["ratio"] = max(part["ratio"] for part in parts)
    for name in ("nan", "inf"):
        record[name] = [sum(part[name][i] for part in parts) for i in (0, 1)]
    return record if passed else {**record, **_wrong(numpy, parts, ours, theirs, shape)}


def _part(
    numpy: Any, one: Any, other: Any, start: int, atol: float, rtol: float, equal_nan: bool
) -> Dict[str, Any]:
    wide = numpy.complex128 if "c" in (one.dtype.kind, other.dtype.kind) else numpy.float64
    x, y = one.astype(wide), other.astype(wide)
    with numpy.errstate(all="ignore"):
        error = abs(x - y)
        error[x == y] = 0.0
        nan_x, nan_y = numpy.isnan(x), numpy.isnan(y)
        if equal_nan:
            error[nan_x & nan_y] = 0.0
        error[numpy.isnan(error)] = math.inf
        size = abs(y)
        tolerance = size * rtol + atol
        relative = error / size
        relative[~numpy.isfinite(relative)] = 0.0
        ratio = error / tolerance
        ratio[error == 0.0] = 0.0
        ratio[numpy.isnan(ratio)] = math.inf
        excess = error - tolerance

    def at(place: int, errors: Any) -> Dict[str, Any]:
        values = [v[place].item() for v in (one, other)]
        actual, expected = (str(v) if isinstance(v, complex) else v for v in values)
        return {"error": float(errors[place]), "index": start + place, "actual": actual, "expected": expected}

    return {
        "max_abs": at(int(error.argmax()), error),
        "max_rel": at(int(relative.argmax()), relative),
        "ratio": float(ratio.max()),
        "nan": [int(nan_x.sum()), int(nan_y.sum())],
        "inf": [int(numpy.isinf(x).sum()), int(numpy.isinf(y).sum())],
        "wrong": start + ((error > tolerance) | (error == math.inf)).nonzero()[0],
        "excess": excess,
        "start": start,
    }


def _wrong(
    numpy: Any, parts: List[Dict[str, Any]], ours: Any, theirs: Any, shape: List[int]
) -> Dict[str, Any]:
    places = numpy.concatenate([part["wrong"] for part in parts])
    excess = numpy.concatenate([part["excess"][part["wrong"] - part["start"]] for part in parts])
    order = numpy.argsort(-numpy.nan_to_num(excess, nan=math.inf), kind="stable")[:WORST]
    worst = []
    for place in places[order]:
        values = [v[place].item() for v in (ours, theirs)]
        actual, expected = (str(v) if isinstance(v, complex) else v for v in values)
        worst.append({"index": unravel(int(place), shape), "actual": actual, "expected": expected})
    digest = hashlib.sha256(places.astype("<i8").tobytes()).hexdigest()[:16] if len(places) else None
    return {"mismatched": len(places), "mismatched_at": digest, "worst": worst}
