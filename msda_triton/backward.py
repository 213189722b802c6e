"""One backward pass: its buffers and its kernels, one after the other."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import torch
from torch import Tensor

from .exact import rounding_grids, smaller, total
from .kernels import deformable_attention_backward_kernel, deformable_attention_coarse_kernel
from .plans import Plan
from .sizes import Options, Sizes, sum_dtype
from .tiles import SIDE, Tile, backward_tile, coarse_precision, coarse_tile, coarse_tiles

Gradients: TypeAlias = tuple[Tensor | None, Tensor | None, Tensor | None]
COARSE_PARTS = 16  # programs that share the queries of one head and one coarse level


class Backward:
    """The backward pass over contiguous tensors, none of them empty, on the current device."""

    def __init__(
        self,
        img: Tensor,
        points: Tensor,
        weights: Tensor,
        grad_out: Tensor,
        shapes: Tensor,
        options: Options,
    ) -> None:
        self.img, self.points, self.weights, self.grad_out = img, points, weights, grad_out
        self.shapes, self.options = shapes, options
        self.sizes = Sizes.of(img, points)

    def run(self, scatter: bool, gather: bool) -> Gradients:
        """Gradients of the image if `scatter`, of points and weights if `gather`."""
        exact = scatter and self.options.deterministic
        tiles = coarse_tiles(self.sizes.samples, self.img.dtype) if scatter else 0
        sums = self._zeros() if scatter else self.img
        rest = self._zeros() if exact else sums
        grids = self._grids() if exact else sums
        addends = smaller(self.sizes, self.img.dtype) if exact else 0.0
        grad_points = torch.empty_like(self.points) if gather else self.points
        grad_weights = torch.empty_like(self.weights) if gather else self.weights
        if scatter or gather:
            does = (scatter, gather, exact, addends, tiles)
            self._fine(does, (sums, rest, grids, grad_points, grad_weights))
        if tiles > 0:
            self._coarse((exact, addends, tiles), (sums, rest, grids))
        grad_img = None
        if scatter:
            grad_img = total(sums, rest, grids, self.img.dtype) if exact else sums.to(self.img.dtype)
        return (grad_img, grad_points, grad_weights) if gather else (grad_img, None, None)

    def _fine(self, does: tuple[Any, ...], outputs: tuple[Tensor, ...]) -> None:
        sizes = self.sizes
        tile = backward_tile(sizes.channels)
        plan = _backward_plan(sizes.key(), self.img.dtype, self.options, tile, does)
        programs = -(-sizes.queries // tile.queries) * sizes.heads * sizes.batch
        inputs = (self.img, self.shapes, self.points, self.weights, self.grad_out)
        plan((programs, 1, 1), inputs + outputs, (sizes.pixels, sizes.queries))

    def _coarse(self, does: tuple[Any, ...], outputs: tuple[Tensor, ...]) -> None:
        sizes = self.sizes
        tile = coarse_tile(sizes.channels)
        plan = _coarse_plan(sizes.key(), self.img.dtype, self.options, tile, does)
        part = -(-sizes.queries // (COARSE_PARTS * tile.queries)) * tile.queries
        programs = -(-sizes.queries // part) * -(-sizes.channels // tile.channels)
        inputs = (self.shapes, self.points, self.weights, self.grad_out)
        grid = (programs, sizes.levels * does[-1], sizes.batch * sizes.heads)
        plan(grid, inputs + outputs, (sizes.pixels, sizes.queries, part))

    def _zeros(self) -> Tensor:
        return torch.zeros_like(self.img, dtype=sum_dtype(self.img.dtype))

    def _grids(self) -> Tensor:
        return rounding_grids(self.shapes, self.points, self.weights, self.grad_out, self.sizes, self.options)


@lru_cache(maxsize=512)
def _backward_plan(
    sizes: Sizes, dtype: torch.dtype, options: Options, tile: Tile, does: tuple[Any, ...]
) -> Plan:
    constants = {**sizes.constants(dtype), **options.constants()}
    constants |= dict(zip(("SCATTER", "GATHER", "EXACT", "SMALLER", "TILES"), does, strict=True))
    constants |= {"SIDE": SIDE, "BLOCK_N": tile.queries, "BLOCK_C": tile.channels}
    return Plan(deformable_attention_backward_kernel, constants, tile.warps)


@lru_cache(maxsize=512)
def _coarse_plan(
    sizes: Sizes, dtype: torch.dtype, options: Options, tile: Tile, does: tuple[Any, ...]
) -> Plan:
    constants = {**sizes.constants(dtype), **options.constants()}
    del constants["WIDE"]
    constants |= dict(zip(("EXACT", "SMALLER", "TILES"), does, strict=True))
    constants |= {"SIDE": SIDE, "PRECISION": coarse_precision(dtype)}
    constants |= {"BLOCK_N": tile.queries, "BLOCK_C": tile.channels}
    return Plan(deformable_attention_coarse_kernel, constants, tile.warps)
