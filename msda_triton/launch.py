"""From tensors to kernel launches: buffers, grids, and the table of tile sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from .checks import Shapes, level_sizes
from .kernels import deformable_attention_backward_kernel, deformable_attention_forward_kernel

INTERPRETED = not isinstance(deformable_attention_forward_kernel, triton.runtime.JITFunction)


class Tile(NamedTuple):
    """Queries and channels of one program, and its warps of 32 threads."""

    queries: int
    channels: int
    warps: int


class Options(NamedTuple):
    """What the kernels are specialised for, besides shapes and types."""

    border: bool
    align_corners: bool
    aten: bool

    def constants(self) -> dict[str, bool]:
        """Values of the kernels' constants of the same meaning."""
        return {"BORDER": self.border, "ALIGN_CORNERS": self.align_corners, "ATEN": self.aten}


def forward_tile(channels: int) -> Tile:
    """Tile of the forward kernel: 1024 values, which 8 warps turn into vector loads of a row each."""
    width = min(triton.next_power_of_2(channels), 128)
    if INTERPRETED:  # an operation costs the same there whatever its size
        return Tile(128, width, 1)
    return Tile(max(1024 // width, 1), width, 8)


def backward_tile(channels: int) -> Tile:
    """Tile of the backward kernel: 256 values in one warp, so that sums over channels stay in a warp."""
    width = min(triton.next_power_of_2(channels), 128)
    if INTERPRETED:
        return Tile(128, width, 1)
    return Tile(max(256 // width, 1), width, 1)


def launch_forward(
    img: Tensor, img_shapes: Shapes, points: Tensor, weights: Tensor, options: Options
) -> Tensor:
    """Run the forward kernel; shapes are those of `multiscale_deformable_attention`, already checked."""
    batch, queries, heads, _, _, _ = points.shape
    channels = img.shape[3]
    out = img.new_empty(batch, queries, heads, channels)
    if out.numel() == 0:
        return out
    tile = forward_tile(channels)
    programs = triton.cdiv(queries, tile.queries) * triton.cdiv(channels, tile.channels) * heads * batch
    with _on(img.device):
        deformable_attention_forward_kernel[(programs,)](
            img.contiguous(),
            shapes_on(img_shapes, img.device),
            points.contiguous(),
            weights.contiguous(),
            out,
            img.shape[1],
            queries,
            **_constants(img, points, options, tile),
        )
    return out


def launch_backward(
    img: Tensor,
    img_shapes: Shapes,
    points: Tensor,
    weights: Tensor,
    grad_out: Tensor,
    options: Options,
    needs: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of img, points and weights; None for an image, or for points and weights, that need none."""
    batch, queries, heads, _, _, _ = points.shape
    scatter, gather = needs[0], needs[1] or needs[2]
    img, points, weights = img.contiguous(), points.contiguous(), weights.contiguous()
    # Sums over many queries lose too much in half precision, and not every GPU adds bfloat16 atomically.
    grad_img = torch.zeros_like(img, dtype=_sum_dtype(img)) if scatter else None
    grad_points = torch.empty_like(points) if gather else None
    grad_weights = torch.empty_like(weights) if gather else None
    if points.numel() > 0 and img.shape[3] > 0 and (scatter or gather):
        tile = backward_tile(img.shape[3])
        with _on(img.device):
            deformable_attention_backward_kernel[(triton.cdiv(queries, tile.queries) * heads * batch,)](
                img,
                shapes_on(img_shapes, img.device),
                points,
                weights,
                grad_out.contiguous(),
                img if grad_img is None else grad_img,
                points if grad_points is None else grad_points,
                weights if grad_weights is None else grad_weights,
                img.shape[1],
                queries,
                SCATTER=scatter,
                GATHER=gather,
                **_constants(img, points, options, tile),
            )
    elif grad_points is not None and grad_weights is not None:
        grad_points.zero_()
        grad_weights.zero_()
    return None if grad_img is None else grad_img.to(img.dtype), grad_points, grad_weights


def shapes_on(img_shapes: Shapes, device: torch.device) -> Tensor:
    """`img_shapes` as a contiguous integer tensor on `device`; numbers are sent there once and kept."""
    if isinstance(img_shapes, Tensor) and img_shapes.device == device:
        return img_shapes.contiguous()
    return _sent(tuple(level_sizes(img_shapes)), device)


@lru_cache(maxsize=256)
def _sent(sizes: tuple[tuple[int, int], ...], device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # what is kept must serve training later on
        return torch.tensor(sizes, dtype=torch.int32, device=device)


def _constants(img: Tensor, points: Tensor, options: Options, tile: Tile) -> dict[str, Any]:
    _, pixels, heads, channels = img.shape
    return {
        "H": heads,
        "C": channels,
        "L": points.shape[3],
        "P": points.shape[4],
        **options.constants(),
        # A point near the border addresses one row and one pixel beyond the image before its mask is applied.
        "WIDE": 2 * pixels * heads * channels >= 2**31,
        "SUM": tl.float64 if img.dtype == torch.float64 else tl.float32,
        "BLOCK_N": tile.queries,
        "BLOCK_C": tile.channels,
        "num_warps": tile.warps,
    }


def _sum_dtype(img: Tensor) -> torch.dtype:
    return torch.float64 if img.dtype == torch.float64 else torch.float32


def _on(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()
