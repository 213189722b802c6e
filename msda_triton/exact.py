"""Sums whose order leaves no trace: on which grid each pixel's gradient is rounded before it is added.

Floating-point sums depend on their order because they round. Sums of multiples of a power of two g that
stay below 2^24 g (2^53 g in float64) do not round. So each pixel gets a g from a bound of what will be added
there, and every addend is split into a multiple of g and the rest, which goes to a second, finer grid
(pre-rounding as in Demmel and Nguyen's reproducible summation, ARITH 2013, which bounds the largest addend).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
import triton
from torch import Tensor

from .kernels import (
    deformable_attention_density_kernel,
    deformable_attention_grid_kernel,
    deformable_attention_total_kernel,
)
from .plans import INTERPRETED, Plan
from .sizes import Options, Sizes, sum_dtype

AT_ONCE = 256  # points, or pixels, of a program
MOST_SAMPLES = 2**22  # beyond, the slack of the bounds is used up


def rounding_grids(
    shapes: Tensor, points: Tensor, weights: Tensor, grad_out: Tensor, sizes: Sizes, options: Options
) -> Tensor:
    """Powers of two [B, I, H], none below the sum of the magnitudes that are added to a pixel in a channel.

    0 where nothing but zeros is added.

    NaN or infinity in weights or grad_out makes them, and the gradient, infinite or NaN.

    Raises:
        ValueError: a head has more than 2^22 points on a level.
    """
    if sizes.samples > MOST_SAMPLES:
        raise ValueError(
            f"{sizes.queries} queries with {sizes.points} points a level are too many to be summed "
            f"deterministically, which holds for at most {MOST_SAMPLES} together: split the queries"
        )
    dtype = sum_dtype(grad_out.dtype)
    largest = _largest(weights, dtype)
    units = 2 ** (30 - samples_bits(sizes))
    density = torch.zeros(sizes.batch, sizes.pixels, sizes.heads, dtype=torch.int32, device=points.device)
    images = sizes.batch * sizes.heads
    count, to_grid = _plans(sizes.key(), grad_out.dtype, options, units)
    inputs = (shapes, points, weights, largest, density)
    count((-(-sizes.samples // AT_ONCE), sizes.levels, images), inputs, (sizes.pixels, sizes.queries))
    # A hundredth more than the bound, for the roundings on the way to it.
    unit = largest * _largest(grad_out, dtype) * (1.01 / units)
    grids = torch.empty(density.shape, dtype=dtype, device=points.device)
    blocks = -(-sizes.pixels * sizes.heads // AT_ONCE)
    to_grid((blocks, sizes.levels, sizes.batch), (shapes, density, unit, grids), (sizes.pixels,))
    return grids


def total(sums: Tensor, rest: Tensor, grids: Tensor, dtype: torch.dtype) -> Tensor:
    """`sums + rest` as `dtype`, all [B, I, H, C], in place of `sums` where that is its type.

    Args:
        grids: as `rounding_grids` gives them; where they are 0, sums and rest are not read.
    """
    in_place = dtype == sums.dtype
    out = sums if in_place else torch.empty_like(sums, dtype=dtype)
    rows, channels = grids.numel(), sums.shape[-1]
    plan, block = _total_plan(channels, in_place)
    plan((-(-rows // block), 1, 1), (grids, sums, rest, out), (rows,))
    return out


@lru_cache(maxsize=64)
def _total_plan(channels: int, in_place: bool) -> tuple[Plan, int]:
    width = min(triton.next_power_of_2(channels), 128)
    rows = max((2**17 if INTERPRETED else 2048) // width, 1)
    constants = {"C": channels, "IN_PLACE": in_place, "BLOCK_R": rows, "BLOCK_C": width}
    return Plan(deformable_attention_total_kernel, constants), rows


def _largest(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    magnitude: Tensor = torch.linalg.vector_norm(tensor, float("inf"), dtype=dtype)  # in one kernel
    return magnitude


def samples_bits(sizes: Sizes) -> int:
    """Binary digits of the number of points that may meet in a pixel."""
    return sizes.samples.bit_length()


def smaller(sizes: Sizes, dtype: torch.dtype) -> float:
    """The second grid in terms of the first: a bound of all the halves of a first unit that are left over."""
    digits = 52 if dtype == torch.float64 else 23
    return float(2.0 ** (samples_bits(sizes) - digits))


@lru_cache(maxsize=512)
def _plans(sizes: Sizes, dtype: torch.dtype, options: Options, units: int) -> tuple[Plan, Plan]:
    constants = {**sizes.constants(dtype), **options.constants(), "UNITS": units, "BLOCK": AT_ONCE}
    count = {name: value for name, value in constants.items() if name not in ("C", "WIDE")}
    to_grid: dict[str, Any] = {"H": sizes.heads, "BLOCK": AT_ONCE}
    if dtype == torch.float64:
        to_grid |= {"DIGITS": 52, "TINY": 2.0**-900}
    else:
        to_grid |= {"DIGITS": 23, "TINY": 2.0**-80}
    return Plan(deformable_attention_density_kernel, count), Plan(deformable_attention_grid_kernel, to_grid)
