# ruff: noqa: N806 - sizes have the names of the formula
"""Inputs of the operator's suite, and where its derivative jumps.

Needs torch alone, so that the suite runs in any cell.
"""

import os
from typing import NamedTuple

import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
RUNNABLE = INTERPRETED or torch.cuda.is_available()
WHY_NOT = "needs a GPU that torch can use, or TRITON_INTERPRET=1"


class Sizes(NamedTuple):
    """Batches, heads, channels, queries, points and the levels' (height, width)."""

    B: int
    H: int
    C: int
    N: int
    P: int
    levels: tuple[tuple[int, int], ...]


class Inputs(NamedTuple):
    """Arguments of the operator, and a gradient of its output."""

    img: torch.Tensor  # [B, I, H, C]
    img_shapes: torch.Tensor  # [L, 2]
    sampling_points: torch.Tensor  # [B, N, H, L, P, 2]
    attention_weights: torch.Tensor  # [B, N, H, L, P]
    grad_out: torch.Tensor  # [B, N, H, C]


REPORTED = Sizes(B=4, H=8, C=32, N=1000, P=3, levels=((64, 64), (32, 32), (16, 16), (8, 8)))
SCALED = Sizes(B=1, H=1, C=8, N=128, P=2, levels=((64, 64), (32, 32), (16, 16), (8, 8)))
UNEVEN = Sizes(B=2, H=2, C=30, N=37, P=2, levels=((13, 21), (5, 1)))
LITTLE = Sizes(B=2, H=2, C=3, N=5, P=2, levels=((2, 3), (4, 5)))


def reported_sizes(record_property) -> Sizes:
    """The reported shapes; under the interpreter smaller ones, which the record says."""
    if not INTERPRETED:
        return REPORTED
    record_property("scaled", f"interpreter: {SCALED} instead of {REPORTED}")
    return SCALED


def draw(sizes: Sizes, dtype: torch.dtype, device: str = DEVICE) -> Inputs:
    """Inputs distributed as in the reported test: normal image, softmax weights, uniform points."""
    B, H, C, N, P, levels = sizes
    L = len(levels)
    pixels = sum(height * width for height, width in levels)
    img = torch.randn(B, pixels, H, C, dtype=dtype, device=device)
    points = torch.rand(B, N, H, L, P, 2, dtype=dtype, device=device)
    weights = torch.randn(B, N, H, L * P, dtype=dtype, device=device).softmax(-1).view(B, N, H, L, P)
    grad_out = torch.rand(B, N, H, C, dtype=dtype, device=device)
    return Inputs(img, torch.tensor(levels, device=device), points, weights, grad_out)


def run(operator, inputs: Inputs, padding_mode: str, align_corners: bool):
    """Output, and the gradients of img, sampling points and attention weights."""
    leaves = [t.detach().clone().requires_grad_() for t in (inputs.img, *inputs[2:4])]
    out = operator(leaves[0], inputs.img_shapes, leaves[1], leaves[2], padding_mode, align_corners)
    return (out.detach(), *torch.autograd.grad(out, leaves, inputs.grad_out))


def in_double(inputs: Inputs) -> Inputs:
    """The same numbers in float64."""
    return Inputs(*(t.double() if t.is_floating_point() else t for t in inputs))


def distance_to_jump(points: torch.Tensor, img_shapes: torch.Tensor, align_corners: bool) -> torch.Tensor:
    """Pixels from each coordinate to the nearest whole pixel coordinate, [B, N, H, L, P, 2].

    The interpolated value is linear between the centres of pixels, and continuous: only its derivative
    jumps, and only at the centres. Borders and corners lie at centres too, with either padding.
    """
    x = _pixels(points.double(), img_shapes, align_corners)
    return (x - x.round()).abs()


def away_from_jumps(
    points: torch.Tensor, img_shapes: torch.Tensor, align_corners: bool, margin: float
) -> torch.Tensor:
    """Points with every coordinate at least `margin` pixels from where the derivative jumps.

    Those that lie closer go to `2 * margin` beyond the jump. An axis of one pixel with aligned corners is
    left alone: there every coordinate is the same pixel.
    """
    x = _pixels(points.double(), img_shapes, align_corners)
    nearest = x.round()
    side = torch.where(x >= nearest, 1.0, -1.0)
    moved = torch.where((x - nearest).abs() < margin, nearest + side * 2 * margin, x)
    scale = _scale(img_shapes, align_corners)
    s = moved / scale.clamp(min=1) if align_corners else (moved + 0.5) / scale
    result = torch.where(scale == 0, points.double(), s).to(points.dtype)
    distance = distance_to_jump(result, img_shapes, align_corners)
    assert bool(((distance >= margin / 2) | (scale == 0)).all()), "margin too small for this type"
    return result


def _pixels(points: torch.Tensor, img_shapes: torch.Tensor, align_corners: bool) -> torch.Tensor:
    scaled = points * _scale(img_shapes, align_corners)
    return scaled if align_corners else scaled - 0.5


def _scale(img_shapes: torch.Tensor, align_corners: bool) -> torch.Tensor:
    size = img_shapes.flip(-1)[:, None].double()  # [L, 1, 2] as (width, height)
    return size - 1 if align_corners else size
