# ruff: noqa: ANN001, ANN201, N803 - Triton's own dialect: no types, constants in capitals
# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call"
"""What deterministic sums come to: both grids' sums together, where there are any."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["ROWS"])
def deformable_attention_total_kernel(
    grids_ptr,  # [ROWS], of type SUM; 0 where nothing was added
    sums_ptr,  # [ROWS, C], of type SUM
    rest_ptr,  # as sums
    total_ptr,  # [ROWS, C], any floating type; may be sums
    ROWS,
    C: tl.constexpr,
    IN_PLACE: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """`total = sums + rest`. Rows without a sum are not read, and IN_PLACE not written."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    within = row < ROWS
    added = within & (tl.load(grids_ptr + row, mask=within, other=0.0) != 0)
    for block in range((C + BLOCK_C - 1) // BLOCK_C):
        channel = block * BLOCK_C + tl.arange(0, BLOCK_C)
        channels = (channel < C)[None, :]
        place = row[:, None] * C + channel[None, :]
        held = added[:, None] & channels
        total = tl.load(sums_ptr + place, mask=held, other=0.0)
        total += tl.load(rest_ptr + place, mask=held, other=0.0)
        written = held
        if not IN_PLACE:
            written = within[:, None] & channels
        tl.store(total_ptr + place, total.to(total_ptr.dtype.element_ty), mask=written)
