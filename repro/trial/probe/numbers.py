"""What a step's output is like, in numbers: a few kernels and one transfer from the device."""

from __future__ import annotations

import hashlib
from typing import Any, Dict, List, Optional

_SAMPLE = 4096
_QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)
_HASHED = 2**28
_SMALLEST = {"float16": -24, "bfloat16": -133, "float32": -149, "float64": -1074}
_INF = float("inf")
_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
EPSILON = {name: 2.0 ** (1 - digits) for name, digits in _DIGITS.items()}
"""From 1 to the next number of each type."""


def name_of(dtype: Any) -> str:
    """Such as "float32"."""
    return str(dtype).replace("torch.", "")


def describe(torch: Any, tensor: Any) -> Dict[str, Any]:
    """Counts, extremes, mean magnitude and quantiles of a tensor.

    Args:
        torch: the module.
        tensor: of numbers of any kind; of complex ones the magnitudes are described.
    """
    described = {
        "shape": list(tensor.shape),
        "dtype": name_of(tensor.dtype),
        "size": tensor.numel(),
        "digest": digest(torch, tensor),
    }
    wide = (tensor.detach().abs() if tensor.is_complex() else tensor.detach()).to(torch.float64).reshape(-1)
    finite = wide[wide.isfinite()]
    tiny = torch.finfo(tensor.dtype).tiny if tensor.is_floating_point() else 0.0
    magnitude = finite.abs()
    counts = [
        wide.isnan().sum(),
        wide.isinf().sum(),
        (wide == 0).sum(),
        ((magnitude < tiny) & (finite != 0)).sum(),
    ]
    numbers = torch.stack(counts).tolist()
    described.update(zip(("nan", "inf", "zero", "subnormal"), map(int, numbers)))  # noqa: B905
    if finite.numel():
        extremes = torch.stack([finite.min(), finite.max(), magnitude.mean()]).tolist()
        described.update(zip(("min", "max", "mean_abs"), extremes))  # noqa: B905
        places = torch.tensor(_QUANTILES, dtype=torch.float64, device=wide.device)
        described["quantiles"] = torch.quantile(sample(finite), places).tolist()
    return described


def digest(torch: Any, tensor: Any) -> str:
    """SHA-1 of the bytes, as they are in order; of a sample where there are very many."""
    flat = tensor.detach().contiguous().reshape(-1)
    if flat.numel() * flat.element_size() > _HASHED:
        flat = sample(flat, _SAMPLE * 64)
    if not flat.numel():
        return hashlib.sha1(b"").hexdigest()
    return hashlib.sha1(bytes(flat.cpu().view(torch.uint8).numpy())).hexdigest()


def sample(flat: Any, most: int = _SAMPLE) -> Any:
    """Elements at even distances."""
    return flat[:: max(1, -(-flat.numel() // most))]


def magnitudes(torch: Any, tensor: Any) -> Any:
    """The absolute values in float64."""
    plain = tensor.detach()
    return plain.abs().to(torch.float64) if plain.is_complex() else plain.to(torch.float64).abs()


def largest(torch: Any, tensors: List[Any]) -> Optional[float]:
    """The largest finite magnitude, or None."""
    found = [
        magnitudes(torch, tensor).nan_to_num(0.0, 0.0, 0.0).max() for tensor in tensors if tensor.numel()
    ]
    return float(torch.stack([one.cpu() for one in found]).max()) if found else None


def spacing(torch: Any, values: Any, dtype: Any) -> Any:
    """The unit of the last place that a type has at each value, in float64."""
    name = name_of(dtype)
    exponent = torch.frexp(values.abs())[1].clamp(min=_SMALLEST[name] + _DIGITS[name])
    return torch.ldexp(torch.ones_like(values), exponent - _DIGITS[name])


def rounding(torch: Any, tensor: Any, truth: Any) -> Optional[Dict[str, float]]:
    """How far a tensor is from its values in float64; None for types without a known last place."""
    if name_of(tensor.dtype) not in _DIGITS or not tensor.numel():
        return None
    found, wide = tensor.detach().to(torch.float64).reshape(-1), truth.reshape(-1)
    alike = (found == wide) | (found.isnan() & wide.isnan())
    difference = (found - wide).abs().masked_fill(alike, 0.0).nan_to_num(_INF, _INF)
    ulps = difference / spacing(torch, wide.nan_to_num(0.0, 0.0, 0.0), tensor.dtype)
    relative = (difference / wide.abs()).masked_fill(alike, 0.0)
    middle = sample(ulps).median()
    numbers = torch.stack([ulps.max(), middle, relative.nan_to_num(_INF, _INF).max()]).tolist()
    return dict(zip(("max_ulp", "median_ulp", "max_relative"), numbers))  # noqa: B905


def cancelled(torch: Any, inputs: List[Any], out: Any) -> Optional[float]:
    """Of a sum or difference, the largest ratio of an input to the output, over all elements.

    An output of 0 counts as one unit of the last place.
    """
    if not out.numel() or name_of(out.dtype) not in _DIGITS:
        return None
    wide = [one.detach().abs().to(out.device, torch.float64).broadcast_to(out.shape) for one in inputs]
    size = torch.stack(wide).amax(0)
    left = (
        out.detach()
        .abs()
        .to(torch.float64)
        .maximum(spacing(torch, size.nan_to_num(0.0, 0.0, 0.0), out.dtype))
    )
    return float((size / left).nan_to_num(0.0, 0.0).max())
