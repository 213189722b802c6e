"""From tensors to kernel launches: buffers, grids and constants."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor

from .backward import Backward, Gradients
from .checks import Shapes
from .kernels import deformable_attention_forward_kernel
from .plans import INTERPRETED, Plan
from .shapes import shapes_on
from .sizes import Options, Sizes
from .tiles import Tile, forward_tile, unrolled

HERE = contextlib.nullcontext()
MANY = 1 << 16  # rows that fill a GPU several times

__all__ = ["INTERPRETED", "Options", "launch_backward", "launch_forward"]


def launch_forward(
    img: Tensor, img_shapes: Shapes, points: Tensor, weights: Tensor, options: Options
) -> Tensor:
    """Run the forward kernel; shapes are those of `multiscale_deformable_attention`, already checked."""
    sizes = Sizes.of(img, points)
    out = img.new_empty(sizes.batch, sizes.queries, sizes.heads, sizes.channels)
    if out.numel() == 0:
        return out
    tile = forward_tile(sizes.channels, img.dtype.itemsize, sizes.rows >= MANY)
    plan = _forward_plan(sizes.key(), img.dtype, options, tile)
    programs = -(-sizes.queries // tile.queries) * -(-sizes.channels // tile.channels)
    shapes = shapes_on(img_shapes, img.device)
    tensors = (img.contiguous(), shapes, points.contiguous(), weights.contiguous(), out)
    with _on(img.device):
        plan((programs * sizes.heads * sizes.batch, 1, 1), tensors, (sizes.pixels, sizes.queries))
    return out


@lru_cache(maxsize=512)
def _forward_plan(sizes: Sizes, dtype: torch.dtype, options: Options, tile: Tile) -> Plan:
    constants = {**sizes.constants(dtype), **options.constants()}
    constants |= {"UNROLLED": unrolled(sizes.points)}
    constants |= {"BLOCK_N": tile.queries, "BLOCK_C": tile.channels}
    return Plan(deformable_attention_forward_kernel, constants, tile.warps)


def launch_backward(
    img: Tensor,
    img_shapes: Shapes,
    points: Tensor,
    weights: Tensor,
    grad_out: Tensor,
    options: Options,
    needs: Sequence[bool],
) -> Gradients:
    """Gradients of img, points and weights; None for an image, or for points and weights, that need none."""
    scatter, gather = bool(needs[0]), bool(needs[1] or needs[2])
    if points.numel() == 0 or img.numel() == 0 or not (scatter or gather):
        zeros = [torch.zeros_like(tensor) for tensor in (img, points, weights)]
        return zeros[0] if scatter else None, zeros[1] if gather else None, zeros[2] if gather else None
    tensors = (img.contiguous(), points.contiguous(), weights.contiguous(), grad_out.contiguous())
    with _on(img.device):
        call = Backward(*tensors, shapes_on(img_shapes, img.device), options)
        return call.run(scatter, gather)


def _on(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    if device.type != "cuda" or _only_one() or device.index == torch.cuda.current_device():
        return HERE
    return torch.cuda.device(device)


@cache
def _only_one() -> bool:
    return torch.cuda.device_count() == 1
