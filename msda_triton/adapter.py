"""What the repro kit asks of this operator: where its derivative jumps, and how often that fails a test.

matrix.yaml names this file under `subject.adapter`; the kit runs it inside a cell, beside torch and nothing
else (docs/adapters.md). It holds for any function with these argument names.

Bilinear interpolation is continuous, and its derivative by a coordinate is not: it jumps where the coordinate
in pixels is a whole number. Two correct implementations that round it differently take different sides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

FUNCTION = ("multiscale_deformable_attention", "triton_multiscale_deformable_attention")
"""Names of the functions whose calls are observed."""

COORDINATES = ("sampling_points",)
"""Arguments whose gradients jump."""

Arguments = Mapping[str, Any]
"""The function's arguments by name, and as `grad_out` the gradient of its result."""

_SAMPLES = 4096
"""Jumps of each level and axis whose height is held against the tolerance."""
_BINS = 64
"""Of the coordinates' histogram."""
_CELLS, _REACH = 128, 4
"""What is tried around a jump: cells of eps / 128, up to 4 eps to either side; eps as just below 1."""


class Place(NamedTuple):
    """Points of one level, and a jump on one axis for each.

    Args:
        level: which one.
        axis: 0 for x, 1 for y.
        batch, query, head, point: [M] indexes.
        pixel: [M] places of jumps on that axis, in pixels.
    """

    level: int
    axis: int
    batch: Tensor
    query: Tensor
    head: Tensor
    point: Tensor
    pixel: Tensor


def jumps(arguments: Arguments, name: str, index: Sequence[int]) -> list[dict[str, Any]]:
    """The jump that lies nearest to one element of a gradient, if the gradient has any.

    Args:
        arguments: of the call; `grad_out` may be missing.
        name: the argument whose gradient it is.
        index: of the element.

    Returns:
        Nothing, or one jump: `coordinate` and `jump` in pixels, `distance` between them in pixels and
        `distance_ulp` in units of the last place of the coordinate as computed, `left` and `right`: the
        derivative of sum(out * grad_out) by the element just before and just behind the jump, in float64, or
        None without `grad_out`.
    """
    if name not in COORDINATES:
        return []
    batch, query, head, level, point, axis = index
    size = _size(arguments, level, axis)
    s = float(arguments[name][tuple(index)])
    if not math.isfinite(s) or _scale(arguments, size) == 0:
        return []
    coordinate = _pixel(s, size, bool(arguments["align_corners"]))
    first, last = _outermost(arguments, size)
    pixel = min(max(round(coordinate), first), last)
    at = [torch.tensor([value]) for value in (batch, query, head, point, pixel)]
    place = Place(level, axis, at[0], at[1], at[2], at[3], at[4])
    left, right = _sides(arguments, place) if arguments.get("grad_out") is not None else (None, None)
    distance = abs(coordinate - pixel)
    return [
        {
            "axis": "xy"[axis],
            "level": level,
            "unit": "pixel",
            "coordinate": coordinate,
            "jump": pixel,
            "distance": distance,
            "distance_ulp": distance / _last_place(arguments, s, size, pixel),
            "left": None if left is None else float(left),
            "right": None if right is None else float(right),
        }
    ]


def predicted_rate(arguments: Arguments, tolerance: Mapping[str, float]) -> float:
    """Probability that a test with such arguments fails as a coordinate falls on different sides of a jump.

    Held against each other are `s * size - 1/2` and what `F.grid_sample(img, 2 * s - 1)` computes, both
    rounded as on the arguments' device. Around each jump it is tried which coordinates part the two; how
    likely those are follows from the points' own distribution: their density, and the grid that they lie on
    (`torch.rand` gives multiples of 2^-24 on the CPU, finer ones on a GPU). A jump counts if its height
    exceeds the tolerance at these images, weights and gradients. No kernel runs.

    Args:
        arguments: of the call, `grad_out` among them.
        tolerance: `atol` and `rtol` of the comparison of the points' gradients.

    Returns:
        1 - exp(-expected number of such elements), of sizes, types and values like these.
    """
    points = arguments["sampling_points"]
    expected = 0.0
    for level in range(points.shape[3]):
        for axis in (0, 1):
            pixels, masses = _parting(arguments, level, axis)
            if (mass := float(masses.sum())) > 0:
                visible = _visible(arguments, level, axis, pixels, masses, tolerance)
                expected += points[:, :, :, level, :, axis].numel() * mass * visible
    return -math.expm1(-expected)


# Coordinates -----------------------------------------------------------------------------------------------


def _pixel(s: Any, size: int, align_corners: bool) -> Any:
    """The normalised coordinate in pixels, as the type of `s` computes it the shortest way."""
    return s * (size - 1) if align_corners else s * size - 0.5


def _size(arguments: Arguments, level: int, axis: int) -> int:
    """Pixels of a level along x (0) or y (1)."""
    shapes = arguments["img_shapes"]
    return int(shapes[level][1 - axis])


def _scale(arguments: Arguments, size: int) -> int:
    """Pixels for each unit of the normalised coordinate."""
    return size - 1 if arguments["align_corners"] else size


def _outermost(arguments: Arguments, size: int) -> tuple[int, int]:
    """The first and the last jump of an axis: zeros padding begins a pixel outside."""
    return (0, size - 1) if arguments["padding_mode"] == "border" else (-1, size)


def _computed_in(arguments: Arguments) -> torch.dtype:
    """The type that coordinates are computed in."""
    return torch.float64 if arguments["sampling_points"].dtype == torch.float64 else torch.float32


def _last_place(arguments: Arguments, s: float, size: int, pixel: int) -> float:
    """The coordinate's spacing as computed: that of the larger of product and jump, not of what is left."""
    largest = max(abs(s * _scale(arguments, size)), abs(float(pixel)))
    dtype = _computed_in(arguments)
    value = torch.tensor(largest, dtype=dtype)
    return float(torch.nextafter(value, torch.tensor(math.inf, dtype=dtype)).double() - value.double())


# Which coordinates part the two ----------------------------------------------------------------------------


def _parting(arguments: Arguments, level: int, axis: int) -> tuple[Tensor, Tensor]:
    """Jumps of an axis, and for each the probability that one coordinate parts the two there.

    Returns:
        [K] pixels and [K] probabilities.
    """
    points, aligned = arguments["sampling_points"], bool(arguments["align_corners"])
    size = _size(arguments, level, axis)
    scale = _scale(arguments, size)
    first, last = _outermost(arguments, size)
    pixels = torch.arange(first, last + 1, dtype=torch.float64)
    if scale == 0:
        return pixels, torch.zeros_like(pixels)
    jump = (pixels if aligned else pixels + 0.5) / scale
    eps = torch.finfo(points.dtype).eps / 2
    offsets = (torch.arange(-_CELLS * _REACH, _CELLS * _REACH, dtype=torch.float64) + 0.5) / _CELLS * eps
    drawn = _on_grid(jump[:, None] + offsets, points)
    parted = _side(_direct(drawn, size, arguments), pixels, arguments, size) != _side(
        _aten(drawn, size, arguments), pixels, arguments, size
    )
    masses: Tensor = parted.double().sum(1) * (eps / _CELLS) * _density(points[..., axis], jump)
    return pixels, masses


def _on_grid(s: Tensor, points: Tensor) -> Tensor:
    """Coordinates as the points' generator gives them: on its grid where all points lie on one; rounded."""
    eps = torch.finfo(points.dtype).eps / 2
    scaled = points.detach().double() / eps
    if bool((scaled == scaled.round()).all()):
        s = (s / eps).round() * eps
    return s.to(points.dtype)


def _density(coordinates: Tensor, at: Tensor) -> Tensor:
    """How densely the coordinates lie around some places: a histogram's answer, 0 where there are none."""
    values = coordinates.detach().double().flatten().cpu()
    values = values[values.isfinite()]
    low, high = float(values.min()), float(values.max())
    if not high > low:
        return torch.zeros_like(at)
    counts = torch.histc(values, _BINS, low, high)
    width = (high - low) / _BINS
    bins = ((at - low) / width).floor().long()
    inside = (bins >= 0) & (bins < _BINS)
    return torch.where(inside, counts[bins.clamp(0, _BINS - 1)] / (values.numel() * width), 0.0)


def _direct(s: Tensor, size: int, arguments: Arguments) -> Tensor:
    """`s * size - 1/2`; a GPU's compiler makes one rounding of it."""
    dtype, aligned = _computed_in(arguments), bool(arguments["align_corners"])
    once = bool(arguments["sampling_points"].is_cuda) and dtype == torch.float32
    x: Tensor = _pixel(s.double() if once else s.to(dtype), size, aligned)
    return x.to(dtype)


def _aten(s: Tensor, size: int, arguments: Arguments) -> Tensor:
    """The coordinate that `F.grid_sample` makes of `2 * s - 1`: GridSampler.cuh, GridSamplerKernel.cpp.

    Product and sum are rounded once, on GPUs and by the vector instructions of present CPUs. For float64 no
    wider type shows that, and the difference is left out of account.
    """
    g = (2 * s.to(_computed_in(arguments)) - 1) + 1
    if arguments["align_corners"]:
        return g / 2 * (size - 1)
    return (g.double() * size - 1).to(g.dtype) / 2


def _side(x: Tensor, pixels: Tensor, arguments: Arguments, size: int) -> Tensor:
    """Whether a coordinate counts as behind a jump: from the jump on, but for the border's first pixel."""
    behind = x.double() >= pixels[:, None]
    if arguments["padding_mode"] != "border":
        return behind
    return torch.where(pixels[:, None] == 0, x.double() > 0, behind)


# How high the jumps are ------------------------------------------------------------------------------------


def _visible(
    arguments: Arguments,
    level: int,
    axis: int,
    pixels: Tensor,
    masses: Tensor,
    tolerance: Mapping[str, float],
) -> float:
    """Share of the jumps that exceed the tolerance, at points drawn from these."""
    generator = torch.Generator().manual_seed(0)
    shape = arguments["sampling_points"].shape
    drawn = [torch.randint(shape[place], (_SAMPLES,), generator=generator) for place in (0, 1, 2, 4)]
    pixel = pixels[torch.multinomial(masses, _SAMPLES, replacement=True, generator=generator)].long()
    batch, query, head, point = drawn
    left, right = _sides(arguments, Place(level, axis, batch, query, head, point, pixel))
    allowed = tolerance["atol"] + tolerance["rtol"] * torch.maximum(left.abs(), right.abs())
    return float(((left - right).abs() > allowed).double().mean())


def _sides(arguments: Arguments, place: Place) -> tuple[Tensor, Tensor]:
    """The derivatives of sum(out * grad_out) by the coordinate, just before and just behind jumps, [M]."""
    size = _size(arguments, place.level, place.axis)
    before, at, behind = (_column(arguments, place, place.pixel + step) for step in (-1, 0, 1))  # [M, C]
    at_point = (place.batch, place.query, place.head)
    weight = _taken(arguments["attention_weights"], (*at_point, _same(place), place.point))
    factor = _taken(arguments["grad_out"], at_point) * weight[:, None] * _scale(arguments, size)
    return ((at - before) * factor).sum(-1), ((behind - at) * factor).sum(-1)


def _column(arguments: Arguments, place: Place, pixel: Tensor) -> Tensor:
    """The image at a whole pixel of the axis, interpolated along the other axis, [M, C]."""
    other = 1 - place.axis
    size = _size(arguments, place.level, other)
    index = (place.batch, place.query, place.head, _same(place), place.point)
    s = _taken(arguments["sampling_points"], index)[:, other]
    x = _pixel(s, size, bool(arguments["align_corners"]))
    if arguments["padding_mode"] == "border":
        x = x.clamp(0, size - 1)
    low = x.floor()
    share = (x - low)[:, None]
    near, far = (_values(arguments, place, pixel, low + step) for step in (0, 1))
    column: Tensor = (1 - share) * near + share * far
    return column


def _values(arguments: Arguments, place: Place, pixel: Tensor, other: Tensor) -> Tensor:
    """The image's values at pixels (along the axis, along the other), with padding, [M, C]."""
    sizes = [_size(arguments, place.level, axis) for axis in (0, 1)]
    along = [pixel.double(), other] if place.axis == 0 else [other, pixel.double()]
    start = sum(_size(arguments, level, 0) * _size(arguments, level, 1) for level in range(place.level))
    inside = torch.ones_like(along[0], dtype=torch.bool)
    kept = []
    for value, size in zip(along, sizes):  # noqa: B905 - Python 3.9
        inside &= (value >= 0) & (value < size)
        kept.append(value.nan_to_num(0.0).clamp(0, size - 1).long())
    found = _taken(arguments["img"], (place.batch, start + kept[1] * sizes[0] + kept[0], place.head))
    if arguments["padding_mode"] == "border":
        return found
    return torch.where(inside[:, None], found, torch.zeros_like(found))


def _same(place: Place) -> Tensor:
    return torch.full_like(place.batch, place.level)


def _taken(tensor: Tensor, index: tuple[Tensor, ...]) -> Tensor:
    """Elements of a tensor, on the host and in float64."""
    found: Tensor = tensor.detach()[tuple(one.to(tensor.device) for one in index)]
    return found.double().cpu()
