"""Measure tiles on the GPU at hand: on request, kept in a file, never at import or at a first call.

    from msda_triton.tuning import tune
    tune(img, img_shapes, sampling_points, attention_weights, path="tiles.json")

Later processes use what was found if MSDA_TRITON_TILES=tiles.json is set.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from . import table
from .checks import Shapes
from .functional import triton_multiscale_deformable_attention
from .launch import MANY
from .sizes import Sizes
from .tiles import backward_case, backward_tile, forward_case, forward_tile

Timer: TypeAlias = Callable[[Callable[[], object]], float]

CANDIDATES = {
    "forward": ((4, 1), (8, 1), (16, 2), (16, 4), (32, 4), (32, 8), (64, 8)),
    "backward": ((4, 1), (8, 1), (16, 2), (32, 4)),
}


def milliseconds(call: Callable[[], object], rounds: int = 30) -> float:
    """Median duration of `call` by the GPU's clock."""
    for _ in range(5):
        call()
    times: list[float] = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def tune(
    img: Tensor,
    img_shapes: Shapes,
    sampling_points: Tensor,
    attention_weights: Tensor,
    *,
    path: str | Path | None = None,
    timer: Timer = milliseconds,
) -> dict[str, tuple[int, int]]:
    """Find the fastest tiles for calls like this one, and use them from now on.

    Args:
        img, img_shapes, sampling_points, attention_weights: as of `multiscale_deformable_attention`. What is
            found holds for their channels, element size, many or few rows, and the GPU's architecture.
        path: file to add what was found to.
        timer: measures one call.

    Returns:
        Queries and warps of a program, by what they hold for; those in use before where they are fastest.
    """
    leaves = [tensor.detach().requires_grad_() for tensor in (img, sampling_points, attention_weights)]
    with torch.no_grad():
        grad_out = torch.ones_like(_call(leaves, img_shapes))

    def forward() -> object:
        with torch.no_grad():
            return _call(leaves, img_shapes)

    def both() -> object:
        return torch.autograd.grad(_call(leaves, img_shapes), leaves, grad_out)

    sizes = Sizes.of(img, sampling_points)
    cases = (forward_case(sizes.channels, img.dtype.itemsize, sizes.rows >= MANY), forward)
    found = {}
    for case, call in (cases, (backward_case(sizes.channels), both)):
        name = table.key(*case)
        found[name] = _fastest(name, CANDIDATES[case[0]], call, timer)
    if path is not None:
        table.write(Path(path), found)
    return found


def _call(leaves: list[Tensor], img_shapes: Shapes) -> Tensor:
    img, points, weights = leaves
    return triton_multiscale_deformable_attention(img, img_shapes, points, weights, "zeros", False)


def _fastest(
    name: str, candidates: tuple[tuple[int, int], ...], call: Callable[[], object], timer: Timer
) -> tuple[int, int]:
    times = {}
    for tile in candidates:
        _use(name, tile)
        times[tile] = timer(call)
    best = min(times, key=lambda tile: times[tile])
    _use(name, best)
    return best


def _use(name: str, tile: tuple[int, int]) -> None:
    table.measured[name] = tile
    forward_tile.cache_clear()
    backward_tile.cache_clear()
