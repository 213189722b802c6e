"""How much one program does: chosen by shape and type, never by timing at run time."""

from __future__ import annotations

from typing import NamedTuple

import triton

from .plans import INTERPRETED, VERSION


class Tile(NamedTuple):
    """Queries and channels of one program, and its warps of 32 threads."""

    queries: int
    channels: int
    warps: int


def forward_tile(channels: int, itemsize: int, rows: int) -> Tile:
    """Tile of the forward kernel for `rows` = batches * queries * heads."""
    width = min(triton.next_power_of_2(channels), 128)
    if INTERPRETED:  # an operation costs the same there whatever its size
        return Tile(128, width, 1)
    values = 2048 if itemsize == 2 and rows >= 1 << 16 else 1024
    return Tile(max(values // width, 1), width, 8)


def backward_tile(channels: int) -> Tile:
    """Tile of the backward kernel: one warp, so that sums over channels stay in it."""
    width = min(triton.next_power_of_2(channels), 128)
    if INTERPRETED:
        return Tile(128, width, 1)
    return Tile(max(128 // width, 1), width, 1)


def coarse_side(samples: int, float64: bool) -> int:
    """Levels of at most this many pixels square go to the coarse kernel; 0 for none.

    Where a head has few `samples` = queries * points on a level, one more launch costs more than it saves.
    Older Tritons fail to compile that kernel ("parent not supported yet").
    """
    return 8 if samples >= 1 << 13 and not float64 and VERSION >= (3, 2) else 0


def coarse_tile(channels: int) -> Tile:
    """Tile of the coarse kernel; a matrix product takes at least 16 channels."""
    return Tile(128, max(16, min(triton.next_power_of_2(channels), 64)), 4)
