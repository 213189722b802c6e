"""The sizes of a call, and what they are to a kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Options(NamedTuple):
    """What the kernels are specialised for, besides shapes and types."""

    border: bool
    align_corners: bool
    aten: bool
    deterministic: bool = False

    def constants(self) -> dict[str, Any]:
        """Values of the kernels' constants of the same meaning."""
        return {"BORDER": self.border, "ALIGN_CORNERS": self.align_corners, "ATEN": self.aten}


class Sizes(NamedTuple):
    """B, I, H, C, N, L and P."""

    batch: int
    pixels: int
    heads: int
    channels: int
    queries: int
    levels: int
    points: int

    @classmethod
    def of(cls, img: Tensor, points: Tensor) -> Sizes:
        """Sizes of img [B, I, H, C] and points [B, N, H, L, P, 2]."""
        _, queries, _, levels, of_level, _ = points.shape
        batch, pixels, heads, channels = img.shape
        return cls(batch, pixels, heads, channels, queries, levels, of_level)

    @property
    def rows(self) -> int:
        """Queries times heads, of all batches."""
        return self.batch * self.queries * self.heads

    @property
    def samples(self) -> int:
        """Points of one head on one level of one image."""
        return self.queries * self.points

    @property
    def wide(self) -> bool:
        """Whether offsets within one image need 64 bits.

        A point near the border addresses one row and one pixel beyond the image before it is masked.
        """
        return 2 * self.pixels * self.heads * self.channels >= 2**31

    def key(self) -> Sizes:
        """The same for all calls that share compiled kernels: these know neither B nor N nor I."""
        return Sizes(0, 2**31 if self.wide else 0, self.heads, self.channels, 0, self.levels, self.points)

    def constants(self, dtype: torch.dtype) -> dict[str, Any]:
        """Values of the forward and backward kernels' constants for an image of `dtype`."""
        import triton.language as tl

        return {
            "H": self.heads,
            "C": self.channels,
            "L": self.levels,
            "P": self.points,
            "WIDE": self.wide,
            "SUM": tl.float64 if dtype == torch.float64 else tl.float32,
        }


def sum_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type in which images of `dtype` are summed."""
    return torch.float64 if dtype == torch.float64 else torch.float32
