"""How much one program does: chosen by shape and type, or as `tuning.tune` has measured it."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
import triton

from .plans import INTERPRETED, VERSION
from .table import look_up

SIDE = 8  # pixels of a coarse level's tile, in a row and in a column


class Tile(NamedTuple):
    """Queries and channels of one program, and its warps of 32 threads."""

    queries: int
    channels: int
    warps: int


def forward_case(channels: int, itemsize: int, many: bool) -> tuple[str, ...]:
    """What a forward tile depends on, in words."""
    return "forward", f"{channels} channels", f"{itemsize} bytes", "many rows" if many else "few rows"


def backward_case(channels: int) -> tuple[str, ...]:
    """What a backward tile depends on, in words."""
    return "backward", f"{channels} channels"


@cache
def forward_tile(channels: int, itemsize: int, many: bool) -> Tile:
    """Tile of the forward kernel; `many` rows = batches * queries * heads fill the GPU several times."""
    case = forward_case(channels, itemsize, many)
    if itemsize == 4:
        return _tile(case, channels, values=128, warps=1)
    return _tile(case, channels, values=2048 if itemsize == 2 and many else 1024, warps=8)


def unrolled(points: int) -> int:
    """How many of a level's points the forward kernel has side by side; more would take long to compile."""
    return max(number for number in range(1, 9) if points % number == 0)


@cache
def backward_tile(channels: int) -> Tile:
    """Tile of the backward kernel: one warp, so that sums over channels stay in it."""
    return _tile(backward_case(channels), channels, values=128, warps=1)


def _tile(case: tuple[str, ...], channels: int, values: int, warps: int) -> Tile:
    """What was measured for a case, else so many values of queries by channels for so many warps."""
    width = min(triton.next_power_of_2(channels), 128)
    measured = look_up(*case)
    if measured is not None:
        return Tile(measured[0], width, measured[1])
    if INTERPRETED:  # an operation costs the same there whatever its size
        return Tile(128, width, 1)
    return Tile(max(values // width, 1), width, warps)


def coarse_tiles(samples: int, dtype: torch.dtype) -> int:
    """Levels of at most this many tiles of SIDE x SIDE pixels go to the coarse kernel; 0 for none.

    Where a head has few `samples` = queries * points on a level, one more launch costs more than it saves.
    Older Tritons fail to compile that kernel ("parent not supported yet").
    """
    if samples < 1 << 13 or dtype == torch.float64 or VERSION < (3, 2):
        return 0
    return 1 if dtype == torch.float32 else 4


def coarse_precision(dtype: torch.dtype) -> str:
    """How the coarse kernel multiplies: at least as exact as the gradient of the output is given.

    The interpreter holds bfloat16 as whole numbers, and so multiplies them as such.
    """
    if INTERPRETED:
        return "tf32x3"
    return {torch.float16: "tf32", torch.bfloat16: "bf16"}.get(dtype, "tf32x3")


@cache
def coarse_tile(channels: int) -> Tile:
    """Tile of the coarse kernel; a matrix product takes at least 16 channels."""
    return Tile(128, max(16, min(triton.next_power_of_2(channels), 64)), 4)
