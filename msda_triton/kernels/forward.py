# ruff: noqa: ANN001, ANN201, E741, N803 - Triton's own dialect: no types, constants in capitals
# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call"
"""Forward kernel: a tile of queries by a block of channels per program."""

import triton
import triton.language as tl

from .coordinates import neighbours, sampling_point


@triton.jit(do_not_specialize=["I", "N"])
def deformable_attention_forward_kernel(
    img_ptr,  # [B, I, H, C]
    shapes_ptr,  # [L, 2]
    points_ptr,  # [B, N, H, L, P, 2]
    weights_ptr,  # [B, N, H, L, P]
    out_ptr,  # [B, N, H, C]
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
    UNROLLED: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """`out[b, n, h] = sum over l, p of weights[b, n, h, l, p] * img[b, level l](points[b, n, h, l, p])`.

    The sampled value is bilinear in the four neighbours. Tiles of queries vary fastest over the grid, so that
    programs which run together read the same head of the same image. SUM is the type of coordinates and sums;
    WIDE asks for 64-bit offsets within one image; UNROLLED divides P.
    """
    tiles = tl.cdiv(N, BLOCK_N)
    blocks: tl.constexpr = (C + BLOCK_C - 1) // BLOCK_C
    program = tl.program_id(0)
    tile = program % tiles
    block = (program // tiles) % blocks
    head = (program // tiles // blocks) % H
    batch = (program // tiles // blocks // H).to(tl.int64)

    query = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    channel = block * BLOCK_C + tl.arange(0, BLOCK_C)
    queries = query < N
    channels = (channel < C)[None, :]
    row = (batch * N + query) * H + head  # [BLOCK_N], 64 bits
    img_ptr += batch * I * (H * C) + head * C

    total = tl.zeros([BLOCK_N, BLOCK_C], dtype=SUM)
    start = 0
    for level in range(L):
        height = tl.load(shapes_ptr + 2 * level).to(tl.int32)
        width = tl.load(shapes_ptr + 2 * level + 1).to(tl.int32)
        fits = start + height * width <= I
        held = query < tl.where(fits, N, 0)  # Triton 3.9 interprets `queries & fits` as a number, no mask
        for group in range(P // UNROLLED):
            for point in tl.static_range(UNROLLED):  # their loads overlap
                place = row * (L * P) + level * P + group * UNROLLED + point
                s_x, s_y, weight = sampling_point(points_ptr, weights_ptr, place, queries, SUM)
                weight = tl.where(fits, weight, float("nan"))  # shapes that the image does not hold must show
                x, right, has_left, has_right, _x = neighbours(s_x, width, BORDER, ALIGN_CORNERS, ATEN)
                y, down, has_top, has_bottom, _y = neighbours(s_y, height, BORDER, ALIGN_CORNERS, ATEN)
                has_top = has_top & held
                has_bottom = has_bottom & held

                pixel = start + y * width + x
                below = width * (H * C)
                if WIDE:
                    pixel = pixel.to(tl.int64)
                    below = width.to(tl.int64) * (H * C)
                near = img_ptr + pixel[:, None] * (H * C) + channel[None, :]
                far = near + below
                top_left = tl.load(near, mask=(has_top & has_left)[:, None] & channels, other=0.0)
                top_right = tl.load(near + H * C, mask=(has_top & has_right)[:, None] & channels, other=0.0)
                low_left = tl.load(far, mask=(has_bottom & has_left)[:, None] & channels, other=0.0)
                low_right = tl.load(far + H * C, mask=(has_bottom & has_right)[:, None] & channels, other=0.0)

                upper = weight * (1 - down)
                lower = weight * down
                total += (upper * (1 - right))[:, None] * top_left.to(SUM)
                total += (upper * right)[:, None] * top_right.to(SUM)
                total += (lower * (1 - right))[:, None] * low_left.to(SUM)
                total += (lower * right)[:, None] * low_right.to(SUM)
        start += height * width

    out = out_ptr + row[:, None] * C + channel[None, :]
    tl.store(out, total.to(out_ptr.dtype.element_ty), mask=queries[:, None] & channels)
