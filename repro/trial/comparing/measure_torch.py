"""Measures how far two tensors are apart: few kernels, and one transfer from the device where they agree."""

from __future__ import annotations

import functools
import hashlib
import math
import struct
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .agreeing import numbers_of
from .measure_numbers import CHUNK, WORST, measure_numbers, unravel

_DIGEST_MOST = 2**20

Known = Mapping[Tuple[int, int], Optional[Mapping[str, Any]]]
"""Numbers of pairs of tensors by the ids of both, which live as long as the comparison."""


def measure_close(
    torch: Any, bound: Mapping[str, Any], passed: bool, known: Known = MappingProxyType({})
) -> List[Dict[str, Any]]:
    """Measure what `torch.testing.assert_close` compared, nested or not; `known` is taken as it is."""
    if isinstance(bound["actual"], torch.Tensor):
        return [_measure_leaf(torch, bound["actual"], bound["expected"], bound, passed, known)]
    pairs: List[Dict[str, Any]] = []
    for path, actual, expected in leaves_of(bound["actual"], bound["expected"], ""):
        record = _measure_leaf(torch, actual, expected, bound, passed, known)
        pairs.append({"item": path, **record} if path else record)
    return pairs


def leaves_of(actual: Any, expected: Any, path: str = "") -> List[Tuple[str, Any, Any]]:
    """The pairs in nested data that are compared with each other, each with its place in the data."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        keys = [key for key in actual if key in expected]
        nested = [leaves_of(actual[key], expected[key], f"{path}[{key!r}]") for key in keys]
    elif _is_sequence(actual) and _is_sequence(expected):
        both = zip(actual, expected)  # noqa: B905 - of unequal lengths, measure what both have
        nested = [leaves_of(one, other, f"{path}[{i}]") for i, (one, other) in enumerate(both)]
    else:
        return [(path, actual, expected)]
    return [leaf for leaves in nested for leaf in leaves]


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _measure_leaf(
    torch: Any, actual: Any, expected: Any, bound: Mapping[str, Any], passed: bool, known: Known
) -> Dict[str, Any]:
    numbers = (bool, int, float)
    if isinstance(actual, numbers) and isinstance(expected, numbers):
        kinds = {bool: torch.bool, int: torch.int64, float: torch.float64}
        like = [torch.empty(0, dtype=kinds[type(one)], device="cpu") for one in (actual, expected)]
        return measure_numbers(actual, expected, *tolerances_of(torch, bound, *like))
    actual, expected = torch.as_tensor(actual), torch.as_tensor(expected)
    atol, rtol = tolerances_of(torch, bound, actual, expected)
    equal_nan, found = bool(bound.get("equal_nan")), known.get((id(actual), id(expected)))
    return measure_tensors(torch, actual, expected, atol, rtol, equal_nan, passed, found)


def tolerances_of(torch: Any, bound: Mapping[str, Any], actual: Any, expected: Any) -> Tuple[float, float]:
    """Absolute and relative tolerance that a comparison applies: its own, or the types' usual ones."""
    atol, rtol = bound.get("atol"), bound.get("rtol")
    if atol is None or rtol is None:
        rtol, atol = _default_tolerances(torch.testing._comparison, actual.dtype, expected.dtype)
    return float(atol), float(rtol)


@functools.lru_cache(maxsize=None)
def _default_tolerances(comparison: Any, *dtypes: Any) -> Tuple[float, float]:
    rtol, atol = comparison.default_tolerances(*dtypes)
    return rtol, atol


def measure_tensors(
    torch: Any,
    actual: Any,
    expected: Any,
    atol: float,
    rtol: float,
    equal_nan: bool,
    passed: bool,
    numbers: Optional[Mapping[str, Any]] = None,
) -> Dict[str, Any]:
    """Measure two tensors of one shape; in float64 and in chunks where they differ.

    Args:
        torch: the module.
        actual: what the code under test gave.
        expected: what it is held against.
        atol: absolute tolerance in force.
        rtol: relative tolerance in force.
        equal_nan: whether two NaNs are equal.
        passed: whether the comparison itself found them close.
        numbers: what is known already, as `agreeing.numbers_of` gives it.
    """
    record: Dict[str, Any] = {
        "dtype": str(actual.dtype).replace("torch.", ""),
        "shape": list(actual.shape),
        "size": actual.numel(),
        "atol": atol,
        "rtol": rtol,
    }
    if actual.shape != expected.shape:
        return {**record, "unmeasured": f"expected has shape {list(expected.shape)}"}
    if not record["size"]:
        return {**record, "mismatched": 0}
    if numbers is None and passed and _real(actual, expected):
        numbers = numbers_of(torch, actual, expected, atol, rtol)
    if numbers is not None:
        return {**record, **numbers}
    with torch.no_grad():
        ours, theirs = actual.detach().reshape(-1), expected.detach().reshape(-1)
        exact = passed and not equal_nan
        starts = range(0, record["size"], CHUNK)
        chunks = [_chunk(torch, ours, theirs, start) for start in starts]
        rows = [_statistics(torch, *chunk, atol, rtol, equal_nan, exact) for chunk in chunks]
        table = (rows[0] if len(rows) == 1 else torch.stack(rows)).tolist()
        record.update(_summary(table if len(rows) > 1 else [table], record["shape"]))
        record["mismatched"] = 0
        if not passed:
            record.update(_mismatches(torch, chunks, atol, rtol, equal_nan, record["shape"]))
    return record


def _real(actual: Any, expected: Any) -> bool:
    """Whether both are of real numbers and on one device."""
    return actual.device == expected.device and not (actual.is_complex() or expected.is_complex())


def _chunk(torch: Any, ours: Any, theirs: Any, start: int) -> Tuple[Any, Any]:
    """A part of both, of one dtype and on one device, as `assert_close` compares them."""
    one, other = ours[start : start + CHUNK], theirs[start : start + CHUNK]
    if one.dtype != other.dtype:
        dtype = torch.promote_types(one.dtype, other.dtype)
        one, other = one.to(dtype), other.to(dtype)
    return one, other.to(one.device) if other.device != one.device else other


def _statistics(
    torch: Any, one: Any, other: Any, atol: float, rtol: float, equal_nan: bool, exact: bool
) -> Any:
    """One row of numbers, still on the device; `_summary` gives them their names.

    Where the comparison passed and no NaN may hide (`exact`), fewer kernels tell the same.
    """
    wide = torch.complex128 if one.is_complex() else torch.float64
    x, y = one.to(wide), other.to(wide)
    difference = (x - y).abs()
    difference.masked_fill_(x == y, 0.0)
    size = y.abs()
    if exact:
        infinite = (size == math.inf).sum()
        counts = [torch.zeros_like(infinite)] * 2 + [infinite] * 2
    else:
        nan_x, nan_y = x.isnan(), y.isnan()
        if equal_nan:
            difference.masked_fill_(nan_x & nan_y, 0.0)
        difference.nan_to_num_(nan=math.inf, posinf=math.inf)
        counts = [nan_x.sum(), nan_y.sum(), x.isinf().sum(), y.isinf().sum()]
    worst, at = difference.max(0)
    relative, relative_at = (difference / size).nan_to_num_(nan=0.0, posinf=0.0).max(0)
    ratio = (difference / (size * rtol + atol)).nan_to_num_(nan=0.0, posinf=math.inf).max()
    places = torch.stack([at, relative_at])
    values = [torch.view_as_real(v).select(-1, 0) if v.is_complex() else v for v in (x[places], y[places])]
    return torch.cat(
        [torch.stack([worst, relative, ratio]), *values, torch.stack([at, relative_at, *counts]).double()]
    )


def _summary(table: List[List[float]], shape: List[int]) -> Dict[str, Any]:
    worst, relative = 0, 0
    for i, row in enumerate(table):
        worst = i if row[0] > table[worst][0] else worst
        relative = i if row[1] > table[relative][1] else relative
    row, other = table[worst], table[relative]
    return {
        "max_abs": row[0],
        "max_abs_at": {
            "index": unravel(worst * CHUNK + int(row[7]), shape),
            "actual": row[3],
            "expected": row[5],
        },
        "max_rel": other[1],
        "max_rel_at": {
            "index": unravel(relative * CHUNK + int(other[8]), shape),
            "actual": other[4],
            "expected": other[6],
        },
        "ratio": max(row[2] for row in table),
        "nan": [int(sum(row[i] for row in table)) for i in (9, 10)],
        "inf": [int(sum(row[i] for row in table)) for i in (11, 12)],
    }


def _mismatches(
    torch: Any, chunks: List[Tuple[Any, Any]], atol: float, rtol: float, equal_nan: bool, shape: List[int]
) -> Dict[str, Any]:
    """Which elements are not close, by torch's own rule, and the worst of them."""
    count, worst, digest = 0, [], hashlib.sha256()
    for i, (one, other) in enumerate(chunks):
        wrong = (~torch.isclose(one, other, rtol=rtol, atol=atol, equal_nan=equal_nan)).nonzero().flatten()
        count += wrong.numel()
        if not wrong.numel():
            continue
        x, y = one[wrong], other[wrong]
        wide = torch.complex128 if one.is_complex() else torch.float64
        excess = (x.to(wide) - y.to(wide)).abs() - (y.to(wide).abs() * rtol + atol)
        top = excess.nan_to_num_(nan=math.inf).topk(min(WORST, len(excess)))
        lists = [top.values, wrong[top.indices], x[top.indices], y[top.indices]]
        worst += list(zip(*(part.tolist() for part in lists), [i] * WORST))  # noqa: B905
        if count <= _DIGEST_MOST:
            digest.update(struct.pack("<q", i) + struct.pack(f"<{wrong.numel()}q", *wrong.tolist()))
    worst.sort(key=lambda row: -row[0])
    return {
        "mismatched": count,
        "mismatched_at": digest.hexdigest()[:16] if 0 < count <= _DIGEST_MOST else None,
        "worst": [
            {"index": unravel(i * CHUNK + at, shape), "actual": _json(x), "expected": _json(y)}
            for _excess, at, x, y, i in worst[:WORST]
        ],
    }


def _json(value: Any) -> Any:
    return str(value) if isinstance(value, complex) else value
