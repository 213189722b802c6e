# ruff: noqa: ANN001, ANN201, N803, SIM108 - Triton's own dialect: no types, constants in capitals
# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call"
"""A sampling point, and where it falls on a level: shared by all kernels that take points."""

import triton
import triton.language as tl


@triton.jit
def sampling_point(points_ptr, weights_ptr, place, mask, SUM: tl.constexpr):
    """Both coordinates and the attention weight of the points at `place`; zeros without `mask`."""
    s_x = tl.load(points_ptr + 2 * place, mask=mask, other=0.0).to(SUM)
    s_y = tl.load(points_ptr + 2 * place + 1, mask=mask, other=0.0).to(SUM)
    weight = tl.load(weights_ptr + place, mask=mask, other=0.0).to(SUM)
    return s_x, s_y, weight


@triton.jit
def neighbours(s, size, BORDER: tl.constexpr, ALIGN_CORNERS: tl.constexpr, ATEN: tl.constexpr):
    """Lower neighbour, distance from it, whether lower and upper neighbour count, whether `s` has a gradient.

    Direct, the pixel coordinate is `s * size - 1/2`, or `s * (size - 1)` where corners are aligned. ATEN
    rounds where `F.grid_sample(img, 2 * s - 1)` rounds on a GPU: `((g + 1) * size - 1) / 2`, or
    `(g + 1) / 2 * (size - 1)`. Multiply-adds are fused by name: nvcc contracts that expression in ATen, and
    whether Triton contracts is a setting that changes between its versions.

    The lower neighbour is the floor of the coordinate, so at a pixel's very centre the derivative is the one
    towards the next pixel. With border padding the gradient is zero from the outermost centres outwards
    (`x <= 0`, `x >= size - 1`), as in ATen. A NaN fails every comparison and so counts nowhere.
    """
    extent = size.to(s.dtype)
    if ATEN:
        g = (2 * s - 1) + 1
        if ALIGN_CORNERS:
            x = g * 0.5 * (extent - 1)
        else:
            x = tl.fma(g, extent, -1.0) * 0.5
    else:
        if ALIGN_CORNERS:
            x = s * (extent - 1)
        else:
            x = tl.fma(s, extent, -0.5)
    if BORDER:
        last = extent - 1
        moves = (x > 0) & (x < last)
        x = tl.where(x <= 0, 0.0, x)
        x = tl.where(x >= last, last, x)
        inside = x >= 0
    else:
        inside = (x >= -1) & (x < extent)
        moves = inside
    x = tl.where(inside, x, 0.0)  # a conversion of NaN or infinity to an integer is undefined
    floor = tl.floor(x)
    index = floor.to(tl.int32)
    return index, x - floor, inside & (index >= 0), inside & (index + 1 < size), moves
