# ruff: noqa: ANN001, ANN201, E741, N803 - Triton's own dialect: no types, constants in capitals
# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call"
"""Backward kernel: a tile of queries per program, all channels, three gradients in one pass."""

import triton
import triton.language as tl

from .coordinates import neighbours, sampling_point
from .sums import grid_at, scatter, tiles_of


@triton.jit(do_not_specialize=["I", "N"])
def deformable_attention_backward_kernel(
    img_ptr,  # [B, I, H, C]
    shapes_ptr,  # [L, 2]
    points_ptr,  # [B, N, H, L, P, 2]
    weights_ptr,  # [B, N, H, L, P]
    grad_out_ptr,  # [B, N, H, C]
    sums_ptr,  # [B, I, H, C], of type SUM, zeroed
    rest_ptr,  # as sums
    grids_ptr,  # [B, I, H], of type SUM
    grad_points_ptr,  # [B, N, H, L, P, 2]
    grad_weights_ptr,  # [B, N, H, L, P]
    I,
    N,
    H: tl.constexpr,
    C: tl.constexpr,
    L: tl.constexpr,
    P: tl.constexpr,
    BORDER: tl.constexpr,
    ALIGN_CORNERS: tl.constexpr,
    ATEN: tl.constexpr,
    WIDE: tl.constexpr,
    SUM: tl.constexpr,
    SCATTER: tl.constexpr,
    GATHER: tl.constexpr,
    EXACT: tl.constexpr,
    SMALLER: tl.constexpr,
    SIDE: tl.constexpr,
    TILES: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Gradients of the forward formula: SCATTER for the image's, GATHER for the points' and the weights'.

    With `d_ij = <grad_out, corner ij>` over channels and (x, y) the distances from the upper left corner:
    `grad_weight = (1-y)((1-x) d_00 + x d_01) + y((1-x) d_10 + x d_11)`,
    `grad_point_x = weight * (width, or width - 1) * ((1-y)(d_01 - d_00) + y(d_11 - d_10))`, y alike.
    A program owns its queries, so these two need no atomics and are the same in every run.

    Levels of at most TILES tiles of SIDE x SIDE pixels are left to the coarse kernel.
    """
    tiles = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    tile = program % tiles
    head = (program // tiles) % H
    batch = (program // tiles // H).to(tl.int64)

    query = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    queries = query < N
    row = (batch * N + query) * H + head  # [BLOCK_N], 64 bits
    first_channel = tl.arange(0, BLOCK_C)
    if C <= BLOCK_C:
        channels = queries[:, None] & (first_channel < C)[None, :]
        grad_out = tl.load(grad_out_ptr + row[:, None] * C + first_channel[None, :], mask=channels, other=0.0)
        grad_out = grad_out.to(SUM)

    nothing = tl.zeros([BLOCK_N], dtype=SUM)
    start = 0
    for level in range(L):
        height = tl.load(shapes_ptr + 2 * level).to(tl.int32)
        width = tl.load(shapes_ptr + 2 * level + 1).to(tl.int32)
        fits = start + height * width <= I
        held = query < tl.where(fits, N, 0)  # Triton 3.9 interprets `queries & fits` as a number, no mask
        first = (batch * I + start) * (H * C) + head * C
        img_row = img_ptr + first
        sums_row = sums_ptr + first
        rest_row = rest_ptr + first
        grids_row = grids_ptr + (batch * I + start) * H + head
        fine = tiles_of(height, width, SIDE) > TILES
        for point in range(P):
            place = row * (L * P) + level * P + point
            s_x, s_y, weight = sampling_point(points_ptr, weights_ptr, place, queries, SUM)
            weight = tl.where(fits, weight, float("nan"))  # shapes that the image does not hold must show
            x, right, has_left, has_right, moves_x = neighbours(s_x, width, BORDER, ALIGN_CORNERS, ATEN)
            y, down, has_top, has_bottom, moves_y = neighbours(s_y, height, BORDER, ALIGN_CORNERS, ATEN)
            has_top = has_top & held
            has_bottom = has_bottom & held
            left = 1 - right
            up = 1 - down

            pixel = y * width + x
            below = width * (H * C)
            if WIDE:
                pixel = pixel.to(tl.int64)
                below = width.to(tl.int64) * (H * C)
            if SCATTER:
                grid = grids_row + pixel * H
                grid_00 = grid_at(grid, has_top & has_left, EXACT)
                grid_01 = grid_at(grid + H, has_top & has_right, EXACT)
                grid_10 = grid_at(grid + width * H, has_bottom & has_left, EXACT)
                grid_11 = grid_at(grid + width * H + H, has_bottom & has_right, EXACT)
            d_00 = nothing
            d_01 = nothing
            d_10 = nothing
            d_11 = nothing
            for block in range((C + BLOCK_C - 1) // BLOCK_C):
                channel = block * BLOCK_C + first_channel
                channels = queries[:, None] & (channel < C)[None, :]
                if C > BLOCK_C:
                    grad_out = tl.load(
                        grad_out_ptr + row[:, None] * C + channel[None, :], mask=channels, other=0.0
                    ).to(SUM)
                near = pixel[:, None] * (H * C) + channel[None, :]
                far = near + below
                top_left = (has_top & has_left)[:, None] & channels
                top_right = (has_top & has_right)[:, None] & channels
                low_left = (has_bottom & has_left)[:, None] & channels
                low_right = (has_bottom & has_right)[:, None] & channels
                if SCATTER:  # noqa: SIM102 - known when compiling, as `fine` is not
                    if fine:
                        grad = (weight * up * left)[:, None] * grad_out
                        scatter(sums_row + near, rest_row + near, grad, grid_00, top_left, EXACT, SMALLER)
                        grad = (weight * up * right)[:, None] * grad_out
                        there = near + H * C
                        scatter(sums_row + there, rest_row + there, grad, grid_01, top_right, EXACT, SMALLER)
                        grad = (weight * down * left)[:, None] * grad_out
                        scatter(sums_row + far, rest_row + far, grad, grid_10, low_left, EXACT, SMALLER)
                        grad = (weight * down * right)[:, None] * grad_out
                        there = far + H * C
                        scatter(sums_row + there, rest_row + there, grad, grid_11, low_right, EXACT, SMALLER)
                if GATHER:
                    corner = tl.load(img_row + near, mask=top_left, other=0.0).to(SUM)
                    d_00 += tl.sum(grad_out * corner, axis=1)
                    corner = tl.load(img_row + near + H * C, mask=top_right, other=0.0).to(SUM)
                    d_01 += tl.sum(grad_out * corner, axis=1)
                    corner = tl.load(img_row + far, mask=low_left, other=0.0).to(SUM)
                    d_10 += tl.sum(grad_out * corner, axis=1)
                    corner = tl.load(img_row + far + H * C, mask=low_right, other=0.0).to(SUM)
                    d_11 += tl.sum(grad_out * corner, axis=1)

            if GATHER:
                if ALIGN_CORNERS:
                    scale_x = (width - 1).to(SUM)
                    scale_y = (height - 1).to(SUM)
                else:
                    scale_x = width.to(SUM)
                    scale_y = height.to(SUM)
                grad_weight = up * (left * d_00 + right * d_01) + down * (left * d_10 + right * d_11)
                grad_x = tl.where(
                    moves_x, weight * scale_x * (up * (d_01 - d_00) + down * (d_11 - d_10)), 0.0
                )
                grad_y = tl.where(
                    moves_y, weight * scale_y * (left * (d_10 - d_00) + right * (d_11 - d_01)), 0.0
                )
                grad_weight = tl.where(fits, grad_weight, float("nan"))
                tl.store(
                    grad_weights_ptr + place, grad_weight.to(grad_weights_ptr.dtype.element_ty), mask=queries
                )
                element = grad_points_ptr.dtype.element_ty
                tl.store(grad_points_ptr + 2 * place, grad_x.to(element), mask=queries)
                tl.store(grad_points_ptr + 2 * place + 1, grad_y.to(element), mask=queries)
        start += height * width
