"""The operator as a layer."""

import math

import torch
from torch import Tensor, nn

from .checks import PADDING_MODES, Shapes
from .functional import multiscale_deformable_attention
from .operators import is_traced
from .shapes import shapes_on


class MultiscaleDeformableAttention(nn.Module):
    """Multi-scale deformable attention with its projections (Deformable DETR, arXiv 2010.04159, section 4.1).

    Args:
        emb_dim: channels of queries, image and output.
        hidden_dim: channels of the projected values, shared out over the heads.
        num_levels: feature maps.
        num_heads: attention heads; must divide hidden_dim.
        num_points: sampling points of a head on each level.
        padding_mode: "border" or "zeros".
        align_corners: as in `multiscale_deformable_attention`.

    Raises:
        ValueError: a number below one, heads that do not divide hidden_dim, an unknown padding mode.
    """

    def __init__(
        self,
        emb_dim: int,
        hidden_dim: int,
        num_levels: int,
        num_heads: int,
        num_points: int,
        padding_mode: str,
        align_corners: bool,
    ) -> None:
        super().__init__()
        if min(emb_dim, hidden_dim, num_levels, num_heads, num_points) < 1:
            raise ValueError("emb_dim, hidden_dim, num_levels, num_heads and num_points must be at least 1")
        if hidden_dim % num_heads != 0:
            raise ValueError(f"hidden_dim {hidden_dim} cannot be shared out over {num_heads} heads")
        if padding_mode not in PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {', '.join(map(repr, PADDING_MODES))}, not {padding_mode!r}"
            )
        self.num_levels, self.num_heads, self.num_points = num_levels, num_heads, num_points
        self.padding_mode, self.align_corners = padding_mode, align_corners
        self.value_proj = nn.Linear(emb_dim, hidden_dim)
        self.sampling_offsets = nn.Linear(emb_dim, num_heads * num_levels * num_points * 2)
        self.attention_weights = nn.Linear(emb_dim, num_heads * num_levels * num_points)
        self.output_proj = nn.Linear(hidden_dim, emb_dim)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialise as the paper does: head h looks in direction 2 pi h / H, point p is p + 1 pixels off."""
        angle = torch.arange(self.num_heads) * (2 * math.pi / self.num_heads)
        ring = torch.stack((angle.cos(), angle.sin()), -1)
        ring = ring / ring.abs().amax(-1, keepdim=True)  # [H, 2], on the unit square
        steps = torch.arange(1, self.num_points + 1)
        bias = ring[:, None, None] * steps[:, None]  # [H, 1, P, 2]
        nn.init.zeros_(self.sampling_offsets.weight)
        self.sampling_offsets.bias.copy_(bias.expand(-1, self.num_levels, -1, -1).flatten())
        nn.init.zeros_(self.attention_weights.weight)
        nn.init.zeros_(self.attention_weights.bias)
        for projection in (self.value_proj, self.output_proj):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(
        self,
        img: Tensor,
        img_shapes: Shapes,
        queries: Tensor,
        reference_points: Tensor,
        padding_mask: Tensor | None = None,
    ) -> Tensor:
        """Let every query look at the image around its reference point.

        Args:
            img: [B, I, emb_dim].
            img_shapes: [L, 2] as (height, width).
            queries: [B, N, emb_dim].
            reference_points: [B, N, 2] as (x, y) in 0 to 1, or [B, N, L, 2] level by level; or boxes, with
                (x, y, width, height) in place of (x, y): offsets are then fractions of half the box.
            padding_mask: [B, I], True where a pixel is padding and has no value.

        Returns:
            [B, N, emb_dim].

        Raises:
            ValueError: shapes that do not fit.
        """
        values = self.value_proj(img)
        if padding_mask is not None:
            values = values.masked_fill(padding_mask[..., None], 0)
        values = values.unflatten(-1, (self.num_heads, -1))  # [B, I, H, C]
        offsets = self.sampling_offsets(queries)
        offsets = offsets.unflatten(-1, (self.num_heads, self.num_levels, self.num_points, 2))
        points = self._sampling_points(reference_points, offsets, img_shapes)
        weights = self.attention_weights(queries).unflatten(-1, (self.num_heads, -1)).softmax(-1)
        weights = weights.unflatten(-1, (self.num_levels, self.num_points))
        out = multiscale_deformable_attention(
            values, img_shapes, points, weights, self.padding_mode, self.align_corners
        )
        projected: Tensor = self.output_proj(out.flatten(-2))
        return projected

    def _sampling_points(self, reference_points: Tensor, offsets: Tensor, img_shapes: Shapes) -> Tensor:
        if reference_points.shape[-1] not in (2, 4) or reference_points.dim() not in (3, 4):
            raise ValueError(
                "reference_points must be [B, N, 2 or 4] or [B, N, L, 2 or 4], "
                f"got shape {tuple(reference_points.shape)}"
            )
        if reference_points.dim() == 3:
            reference_points = reference_points[:, :, None]
        around = reference_points[:, :, None, :, None]  # [B, N, 1, L or 1, 1, 2 or 4]
        if reference_points.shape[-1] == 4:
            return around[..., :2] + offsets / self.num_points * around[..., 2:] * 0.5
        if is_traced(offsets):
            sizes = torch.as_tensor(img_shapes, device=offsets.device)
        else:  # without a copy to the GPU every time
            sizes = shapes_on(img_shapes, offsets.device)
        sizes = sizes.flip(-1)  # [L, 2] as (width, height)
        return around + offsets / sizes[:, None].to(reference_points.dtype)
