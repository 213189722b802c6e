# ruff: noqa: ANN001, ANN201, E741, N803 - Triton's own dialect: no types, constants in capitals
# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call"
"""How much weight falls on each pixel: bounds the sums of the image's gradient before they are taken."""

import triton
import triton.language as tl

from .coordinates import neighbours, sampling_point
from .sums import level_of


@triton.jit(do_not_specialize=["I", "N"])
def deformable_attention_density_kernel(
    shapes_ptr,  # [L, 2]
    points_ptr,  # [B, N, H, L, P, 2]
    weights_ptr,  # [B, N, H, L, P]
    largest_ptr,  # [1], the largest magnitude of a weight
    density_ptr,  # [B, I, H], int32, zeroed
    I,
    N,
    H: tl.constexpr,
    L: tl.constexpr,
    P: tl.constexpr,
    BORDER: tl.constexpr,
    ALIGN_CORNERS: tl.constexpr,
    ATEN: tl.constexpr,
    SUM: tl.constexpr,
    UNITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """`density[b, i, h]`: the sum of |weight| over the points whose upper left neighbour is pixel i.

    In units of the largest weight / UNITS, rounded up: sums of whole numbers do not depend on their order.
    Points left of the first column or above the first row count for that. UNITS * N * P must stay below 2^31.
    """
    level = tl.program_id(1)
    head = tl.program_id(2) % H
    batch = (tl.program_id(2) // H).to(tl.int64)
    start, height, width = level_of(shapes_ptr, level)
    fits = start + height * width <= I

    number = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # of a query's point
    query = number // P
    held = query < tl.where(fits, N, 0)
    place = ((batch * N + query) * H + head) * (L * P) + level * P + number % P
    s_x, s_y, weight = sampling_point(points_ptr, weights_ptr, place, held, SUM)
    largest = tl.load(largest_ptr).to(SUM)
    largest = tl.where(largest > 0, largest, 1.0)
    units = tl.ceil(tl.abs(weight) / largest * UNITS)
    units = tl.where(weight != 0, tl.maximum(units, 1.0), 0.0)  # the division may underflow
    units = tl.where(units <= UNITS, units, 0.0).to(tl.int32)  # NaN is no number of units
    x, _right, has_left, has_right, _x = neighbours(s_x, width, BORDER, ALIGN_CORNERS, ATEN)
    y, _down, has_top, has_bottom, _y = neighbours(s_y, height, BORDER, ALIGN_CORNERS, ATEN)
    counts = held & (has_left | has_right) & (has_top | has_bottom)
    pixel = batch * I + start + tl.maximum(y, 0) * width + tl.maximum(x, 0)
    tl.atomic_add(density_ptr + pixel * H + head, units, mask=counts, sem="relaxed")


@triton.jit(do_not_specialize=["I"])
def deformable_attention_grid_kernel(
    shapes_ptr,  # [L, 2]
    density_ptr,  # [B, I, H], int32
    unit_ptr,  # [1], of type SUM
    grids_ptr,  # [B, I, H], of type SUM
    I,
    H: tl.constexpr,
    DIGITS: tl.constexpr,
    TINY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Powers of two not below unit * density of the four pixels whose points come here; at least TINY.

    0 where no weight comes, unless a weight or grad_out is NaN or infinite.
    """
    level = tl.program_id(1)
    batch = tl.program_id(2).to(tl.int64)
    start, height, width = level_of(shapes_ptr, level)
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    within = element // H
    there = within < tl.where(start + height * width <= I, height * width, 0)
    beside = there & (within % width > 0)
    above = there & (within >= width)
    here = density_ptr + (batch * I + start) * H + element
    total = tl.load(here, mask=there, other=0).to(tl.int64)
    total += tl.load(here - H, mask=beside, other=0)
    total += tl.load(here - width * H, mask=above, other=0)
    total += tl.load(here - width * H - H, mask=beside & above, other=0)
    unit = tl.load(unit_ptr)
    exactly = total.to(unit.dtype) * unit
    bound = tl.where(exactly < TINY, TINY, exactly).to(unit.dtype)  # NaN stays
    if DIGITS == 52:
        bits = bound.to(tl.int64, bitcast=True) + ((1 << DIGITS) - 1)
    else:  # Triton 3.0 takes no constant of its kernel for the type here
        bits = bound.to(tl.int32, bitcast=True) + ((1 << DIGITS) - 1)
    grid = (bits >> DIGITS << DIGITS).to(unit.dtype, bitcast=True)
    grid = tl.where((total == 0) & (exactly == 0), 0.0, grid)  # NaN for an infinite unit
    tl.store(grids_ptr + (batch * I + start) * H + element, grid, mask=there)
