"""The operator written out with gathers: the formula itself, differentiable as often as one likes."""

import torch
from torch import Tensor

from .checks import Shapes, check_arguments, level_sizes


def reference_multiscale_deformable_attention(
    img: Tensor,
    img_shapes: Shapes,
    sampling_points: Tensor,
    attention_weights: Tensor,
    padding_mode: str,
    align_corners: bool,
    *,
    arithmetic: str = "direct",
) -> Tensor:
    """Multi-scale deformable attention by explicit bilinear interpolation.

    Arguments, result, errors and the convention where the derivative jumps are those of
    `multiscale_deformable_attention`. Given float64 tensors it is the oracle of the tests; the double
    backward of the Triton operator goes through it.
    """
    check_arguments(img, img_shapes, sampling_points, attention_weights, padding_mode, arithmetic)
    dtype = torch.float64 if img.dtype == torch.float64 else torch.float32
    values, points, weights = img.to(dtype), sampling_points.to(dtype), attention_weights.to(dtype)

    total = values.new_zeros(*sampling_points.shape[:3], img.shape[3])
    start = 0
    for level, (height, width) in enumerate(level_sizes(img_shapes)):
        feature = values[:, start : start + height * width].transpose(1, 2)  # [B, H, height * width, C]
        x, y = points[:, :, :, level].unbind(-1)  # [B, N, H, P]
        x = pixel_coordinate(x, width, align_corners, arithmetic)
        y = pixel_coordinate(y, height, align_corners, arithmetic)
        sampled = _bilinear(feature, x, y, height, width, padding_mode == "border")  # [B, N, H, P, C]
        total = total + (weights[:, :, :, level, :, None] * sampled).sum(-2)
        start += height * width
    return total.to(img.dtype)


def pixel_coordinate(s: Tensor, size: int, align_corners: bool, arithmetic: str = "direct") -> Tensor:
    """The normalised coordinate `s` in pixels on an axis of `size` pixels; 0 is the first one's centre."""
    if arithmetic == "direct":
        return s * (size - 1) if align_corners else s * size - 0.5
    g = (2 * s - 1) + 1
    return g / 2 * (size - 1) if align_corners else (g * size - 1) / 2


def _bilinear(feature: Tensor, x: Tensor, y: Tensor, height: int, width: int, border: bool) -> Tensor:
    x, counts_x = _within(x, width, border)
    y, counts_y = _within(y, height, border)
    left, top = x.detach().floor(), y.detach().floor()
    right_share, lower_share = x - left, y - top
    counts = counts_x & counts_y
    sampled = feature.new_zeros(*x.shape, feature.shape[-1])
    for row, share_y in ((top, 1 - lower_share), (top + 1, lower_share)):
        for column, share_x in ((left, 1 - right_share), (left + 1, right_share)):
            exists = counts & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            index = torch.where(exists, row * width + column, 0).long()  # [B, N, H, P]
            share = torch.where(exists, share_y * share_x, 0)
            sampled = sampled + share[..., None] * _gather(feature, index)
    return sampled


def _within(x: Tensor, size: int, border: bool) -> tuple[Tensor, Tensor]:
    """Clamp to the border (no gradient there, the outermost centres included) or mask what lies outside."""
    if border:
        moves = (x > 0) & (x < size - 1)
        counts = ~x.isnan()
        return torch.where(moves, x, x.detach().nan_to_num(nan=0.0).clamp(0, size - 1)), counts
    counts = (x >= -1) & (x < size)
    return torch.where(counts, x, 0), counts


def _gather(feature: Tensor, index: Tensor) -> Tensor:
    batch, queries, heads, points = index.shape
    flat = index.transpose(1, 2).reshape(batch, heads, queries * points, 1)
    picked = feature.gather(2, flat.expand(-1, -1, -1, feature.shape[-1]))  # [B, H, N * P, C]
    return picked.view(batch, heads, queries, points, feature.shape[-1]).transpose(1, 2)
