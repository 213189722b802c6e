# ruff: noqa: ANN001, ANN201, E741, N803 - Triton's own dialect: no types, constants in capitals
# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call"
"""Image gradient of levels of a few pixels: a matrix product instead of additions that wait in line."""

import triton
import triton.language as tl

from .coordinates import neighbours, sampling_point
from .sums import grid_at, level_of, scatter, tiles_of


@triton.jit(do_not_specialize=["I", "N", "PART"])
def deformable_attention_coarse_kernel(
    shapes_ptr,  # [L, 2]
    points_ptr,  # [B, N, H, L, P, 2]
    weights_ptr,  # [B, N, H, L, P]
    grad_out_ptr,  # [B, N, H, C]
    sums_ptr,  # [B, I, H, C], of type SUM, zeroed
    rest_ptr,  # as sums
    grids_ptr,  # [B, I, H], of type SUM
    I,
    N,
    PART,  # queries of a program
    H: tl.constexpr,
    C: tl.constexpr,
    L: tl.constexpr,
    P: tl.constexpr,
    BORDER: tl.constexpr,
    ALIGN_CORNERS: tl.constexpr,
    ATEN: tl.constexpr,
    SUM: tl.constexpr,
    EXACT: tl.constexpr,
    SMALLER: tl.constexpr,
    SIDE: tl.constexpr,
    TILES: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """`grad_img[i] = sum over queries n of share[i, n] * grad_out[n]` where a level is a tile or a few.

    A tile is SIDE x SIDE pixels; levels of more than TILES tiles are left to the backward kernel.

    `share[i, n] = sum over p of weights[n, p] * max(0, 1 - |x - x_i|) * max(0, 1 - |y - y_i|)`: bilinear
    weights as hat functions, so the matrix is built without looking anything up. PRECISION is of the product,
    whose sums are float32: "tf32x3", as good as float32; "tf32", which holds a float16 gradient as it is;
    "bf16", which does so with bfloat16. A weight or gradient that is not finite reaches the whole level.
    """
    blocks: tl.constexpr = (C + BLOCK_C - 1) // BLOCK_C
    part = tl.program_id(0) // blocks
    channel = tl.program_id(0) % blocks * BLOCK_C + tl.arange(0, BLOCK_C)
    level = tl.program_id(1) // TILES
    tile = tl.program_id(1) % TILES
    head = tl.program_id(2) % H
    batch = (tl.program_id(2) // H).to(tl.int64)
    start, height, width = level_of(shapes_ptr, level)
    across = tl.cdiv(width, SIDE)
    tiles = tiles_of(height, width, SIDE)
    if (tile < tiles) & (tiles <= TILES) & (start + height * width <= I):
        top = tile // across * SIDE
        left = tile % across * SIDE
        total = tl.zeros([SIDE * SIDE, BLOCK_C], dtype=SUM)
        rows = (top + tl.arange(0, SIDE)).to(SUM)[:, None, None]
        columns = (left + tl.arange(0, SIDE)).to(SUM)[None, :, None]
        for first in range(part * PART, tl.minimum(part * PART + PART, N), BLOCK_N):
            query = first + tl.arange(0, BLOCK_N)
            queries = query < N
            row = (batch * N + query) * H + head  # [BLOCK_N], 64 bits
            grad_out = tl.load(
                grad_out_ptr + row[:, None] * C + channel[None, :],
                mask=queries[:, None] & (channel < C)[None, :],
                other=0.0,
            )
            shares = tl.zeros([SIDE, SIDE, BLOCK_N], dtype=SUM)
            for point in tl.static_range(P):
                place = row * (L * P) + level * P + point
                s_x, s_y, weight = sampling_point(points_ptr, weights_ptr, place, queries, SUM)
                x, right, has_left, has_right, _x = neighbours(s_x, width, BORDER, ALIGN_CORNERS, ATEN)
                y, down, has_top, has_bottom, _y = neighbours(s_y, height, BORDER, ALIGN_CORNERS, ATEN)
                weight = tl.where((has_left | has_right) & (has_top | has_bottom), weight, 0.0)
                x = x.to(SUM) + right
                y = y.to(SUM) + down
                vertical = tl.maximum(1 - tl.abs(y[None, None, :] - rows), 0.0) * weight[None, None, :]
                shares += vertical * tl.maximum(1 - tl.abs(x[None, None, :] - columns), 0.0)
            flat = tl.reshape(shares, [SIDE * SIDE, BLOCK_N])
            if PRECISION == "bf16":
                total += tl.dot(flat.to(tl.bfloat16), grad_out)
            else:
                total += tl.dot(flat, grad_out.to(SUM), input_precision=PRECISION)

        y = top + tl.arange(0, SIDE * SIDE) // SIDE
        x = left + tl.arange(0, SIDE * SIDE) % SIDE
        exists = (y < height) & (x < width)
        pixel = batch * I + start + y * width + x
        grid = grid_at(grids_ptr + pixel * H + head, exists, EXACT)
        place = (pixel * (H * C) + head * C)[:, None] + channel[None, :]
        mask = exists[:, None] & (channel < C)[None, :]
        scatter(sums_ptr + place, rest_ptr + place, total, grid, mask, EXACT, SMALLER)
