"""Tells in one pass that two tensors agree, and how far they are apart: the verdict and its numbers together.

torch's own comparison takes some fifteen operations and a transfer from the device to say that tensors are
close. A record's numbers hold that answer, too: an error that stays clear of its tolerance everywhere is
close by any rounding. So a comparison that passes is measured in place of being made, at the same price.
What is near its tolerance, infinite, NaN or of another type goes to torch's comparison: no verdict changes.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Dict, List, Optional

from .measure_numbers import CHUNK, measure_agreeing, unravel

PART = 2**23
"""Elements that a device measures at a time: bounds its memory, and lets float32 count its places."""
CLEAR = 0.999
"""Part of its tolerance that an error may take and be close whatever the rounding, in float32 or wider."""
_LEAST, _MOST = 1e-30, 1e30


def agreement(torch: Any, actual: Any, expected: Any, atol: float, rtol: float) -> Optional[Dict[str, Any]]:
    """The numbers of two tensors that are close beyond doubt; None where only torch's comparison can tell.

    Args:
        torch: the module.
        actual: what the code under test gave.
        expected: what it is held against.
        atol: absolute tolerance in force.
        rtol: relative tolerance in force.
    """
    if not (_alike(torch, actual, expected) and _sound(atol, rtol)):
        return None
    numbers = numbers_of(torch, actual, expected, atol, rtol)
    return numbers if numbers is not None and numbers["ratio"] <= CLEAR else None


def _alike(torch: Any, actual: Any, expected: Any) -> bool:
    """Whether these are ordinary tensors that differ in nothing but their values."""
    plain = (torch.Tensor, torch.nn.Parameter)
    return (
        type(actual) in plain
        and type(expected) in plain
        and actual.dtype == expected.dtype
        and actual.dtype in (torch.float32, torch.float64)
        and actual.shape == expected.shape
        and actual.device == expected.device
        and actual.layout == torch.strided == expected.layout
        and actual.numel() > 0
        and not actual.is_meta
    )


def _sound(atol: float, rtol: float) -> bool:
    """Whether the tolerances, and one in units of the other, are ordinary numbers in float32."""
    numbers = (atol, rtol, atol / rtol) if rtol else (atol,)
    return all(_LEAST <= number <= _MOST for number in numbers)


def numbers_of(torch: Any, actual: Any, expected: Any, atol: float, rtol: float) -> Optional[Dict[str, Any]]:
    """Measure two real tensors of one shape on one device, in few steps and with one transfer.

    None where an infinity or a NaN is in them. The worst places are those that a computation in the tensors'
    own type finds (float32 at least); the numbers at these places are computed in float64.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and actual.device.type == "cpu" and actual.numel() <= CHUNK:
        # Each of torch's kernels costs microseconds there.
        x, y = _wide_enough(torch, actual.detach(), expected.detach())
        return measure_agreeing(
            numpy, x.numpy().reshape(-1), y.numpy().reshape(-1), atol, rtol, list(x.shape)
        )
    with torch.no_grad():
        if actual.numel() <= PART:
            parts = [_worst_of(torch, actual, expected, atol, rtol)]
        else:
            sides = [side.reshape(-1).split(PART) for side in (actual, expected)]
            parts = [_worst_of(torch, one, other, atol, rtol) for one, other in zip(*sides)]  # noqa: B905
        table = (parts[0] if len(parts) == 1 else torch.cat(parts)).tolist()
    return _named(table, len(table) // len(parts), atol, rtol, list(actual.shape))


def _wide_enough(torch: Any, *tensors: Any) -> List[Any]:
    exact = (torch.float16, torch.bfloat16, torch.float32)
    wide = torch.float32 if all(each.dtype in exact for each in tensors) else torch.float64
    return [each if each.dtype == wide else each.to(wide) for each in tensors]


def _worst_of(torch: Any, one: Any, other: Any, atol: float, rtol: float) -> Any:
    """The largest absolute and relative error and ratio, the values there, and the places; on the device."""
    x, y = _wide_enough(torch, one, other)
    bounded = bool(atol and rtol)  # else the ratio follows from one of the errors
    errors = x.new_empty((3 if bounded else 2, *x.shape))
    rows = errors.unbind()
    torch.sub(x, y, out=rows[0]).abs_()
    size = y.abs()
    torch.threshold(size, 0.0, math.inf, out=rows[1])  # relative to zero, nothing can be said
    torch.div(rows[0], rows[1], out=rows[1])
    if bounded:
        torch.div(rows[0], size.add_(atol / rtol), out=rows[2])
    worst, places = errors.view(len(rows), -1).max(1)
    return torch.cat([worst, x.take(places), y.take(places), places.to(x.dtype)])  # of one type: one kernel


def _named(
    table: List[float], width: int, atol: float, rtol: float, shape: List[int]
) -> Optional[Dict[str, Any]]:
    """The fields of a record, from `width` numbers a part."""
    kinds = width // 4
    found: List[List[Dict[str, Any]]] = [[] for _ in range(kinds)]
    for start in range(0, len(table), width):
        for kind, places in enumerate(found):
            worst, x, y, place = table[start + kind : start + width : kinds]
            if kind != 1 and not math.isfinite(worst):
                return None
            index = unravel(start // width * PART + int(place), shape)
            places.append({"index": index, "actual": x, "expected": y})
    absolute, relative = max(found[0], key=_error), max(found[1], key=_relative)
    bound_by = found[2] if kinds == 3 else [relative if rtol else absolute]
    return {
        "max_abs": _error(absolute),
        "max_abs_at": absolute,
        "max_rel": _relative(relative),
        "max_rel_at": relative,
        "ratio": max(_ratio(at, atol, rtol) for at in bound_by),
        "nan": [0, 0],
        "inf": [0, 0],
        "mismatched": 0,
    }


def _error(at: Dict[str, Any]) -> float:
    return float(abs(at["actual"] - at["expected"]))


def _relative(at: Dict[str, Any]) -> float:
    return _error(at) / abs(at["expected"]) if at["expected"] else 0.0


def _ratio(at: Dict[str, Any], atol: float, rtol: float) -> float:
    error = _error(at)
    return error / (atol + rtol * abs(at["expected"])) if error else 0.0
