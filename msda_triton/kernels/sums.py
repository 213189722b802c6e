# ruff: noqa: ANN001, ANN201, N803 - Triton's own dialect: no types, constants in capitals
# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call"
"""Adding to the image's gradient, and on which grid: shared by the kernels that do."""

import triton
import triton.language as tl


@triton.jit
def scatter(sums, rest, grad, grid, mask, EXACT: tl.constexpr, SMALLER: tl.constexpr):
    """Add `grad` to `sums`, in any order; EXACT so that the order leaves no trace.

    To round to a multiple of g, add 3 * 2^(bits - 1) * g and take it away again. Sums of multiples of g are
    exact while they stay below 2^bits * g, and exact sums do not depend on their order. `grid` is a power of
    two not below the sum of all magnitudes; what the rounding leaves over goes to `rest`, whose grid is
    SMALLER times that. Relaxed: only later kernels read these sums, the default order fences each atomic.
    """
    if EXACT:
        whole = (grad + 3 * grid) - 3 * grid
        grad = ((grad - whole) + (3 * SMALLER) * grid) - (3 * SMALLER) * grid
        tl.atomic_add(rest, grad, mask=mask, sem="relaxed")
        grad = whole
    tl.atomic_add(sums, grad, mask=mask, sem="relaxed")


@triton.jit
def grid_at(grids, mask, EXACT: tl.constexpr):
    """The grids of a tile's corners as a column; anything where sums need none."""
    column = mask[:, None]
    if EXACT:
        column = tl.load(grids, mask=mask, other=0.0)[:, None]
    return column


@triton.jit
def level_of(shapes_ptr, level):
    """First pixel, height and width of a level."""
    start = 0
    for before in range(level):
        above = tl.load(shapes_ptr + 2 * before).to(tl.int32)
        start += above * tl.load(shapes_ptr + 2 * before + 1).to(tl.int32)
    height = tl.load(shapes_ptr + 2 * level).to(tl.int32)
    width = tl.load(shapes_ptr + 2 * level + 1).to(tl.int32)
    return start, height, width


@triton.jit
def tiles_of(height, width, SIDE: tl.constexpr):
    """How many tiles of SIDE x SIDE pixels cover a level."""
    return tl.cdiv(height, SIDE) * tl.cdiv(width, SIDE)
