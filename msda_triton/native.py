"""The operator on top of `torch.nn.functional.grid_sample`."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from .checks import Shapes, check_arguments, level_sizes


def native_multiscale_deformable_attention(
    img: Tensor,
    img_shapes: Shapes,
    sampling_points: Tensor,
    attention_weights: Tensor,
    padding_mode: str,
    align_corners: bool,
) -> Tensor:
    """Multi-scale deformable attention with `F.grid_sample`: slower and hungrier than Triton, runs anywhere.

    Arguments, result and errors are those of `multiscale_deformable_attention`. Coordinates round as
    `grid_sample` rounds them; half precision is computed in float32. Differentiable once, like grid_sample.
    """
    check_arguments(img, img_shapes, sampling_points, attention_weights, padding_mode)
    batch, queries, heads, _, _, _ = sampling_points.shape
    channels = img.shape[3]
    dtype = torch.float64 if img.dtype == torch.float64 else torch.float32
    values, points, weights = img.to(dtype), sampling_points.to(dtype), attention_weights.to(dtype)

    total = values.new_zeros(batch * heads, channels, queries)
    start = 0
    for level, (height, width) in enumerate(level_sizes(img_shapes)):
        feature = values[:, start : start + height * width].permute(0, 2, 3, 1)  # [B, H, C, height * width]
        feature = feature.reshape(batch * heads, channels, height, width)
        grid = 2 * points[:, :, :, level].transpose(1, 2).flatten(0, 1) - 1  # [B * H, N, P, 2]
        sampled = F.grid_sample(feature, grid, "bilinear", padding_mode, align_corners)  # [B * H, C, N, P]
        weight = weights[:, :, :, level].transpose(1, 2).flatten(0, 1)  # [B * H, N, P]
        total = total + (sampled * weight[:, None]).sum(-1)
        start += height * width
    return total.view(batch, heads, channels, queries).permute(0, 3, 1, 2).to(img.dtype)  # [B, N, H, C]
