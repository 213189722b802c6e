"""The operator under the names and with the arguments of Deformable DETR, mmcv and Hugging Face."""

from torch import Tensor

from .checks import Shapes
from .functional import multiscale_deformable_attention


def ms_deform_attn(
    value: Tensor,
    value_spatial_shapes: Shapes,
    value_level_start_index: Tensor | None,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    im2col_step: int = 64,
) -> Tensor:
    """A drop-in for Deformable DETR's `MSDeformAttnFunction.apply` and mmcv's counterpart.

    Zeros padding, unaligned corners.

    Args:
        value: [B, I, H, C].
        value_spatial_shapes: [L, 2] as (height, width), a tensor or pairs of numbers.
        value_level_start_index: ignored: levels lie one after the other in `value`.
        sampling_locations: [B, N, H, L, P, 2] as (x, y) in 0 to 1.
        attention_weights: [B, N, H, L, P].
        im2col_step: ignored: the batch is never split.

    Returns:
        [B, N, H * C].

    Raises:
        ValueError, TypeError: as `multiscale_deformable_attention`.
    """
    return multiscale_deformable_attention(
        value, value_spatial_shapes, sampling_locations, attention_weights, "zeros", False
    ).flatten(-2)
