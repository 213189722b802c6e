"""What the kit is told of the operator: planted jumps, and derivatives held against autograd."""

import inspect
import json
import math
from typing import NamedTuple

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from msda_triton import (
    adapter,
    multiscale_deformable_attention,
    native_multiscale_deformable_attention,
    reference_multiscale_deformable_attention,
    triton_multiscale_deformable_attention,
)
from repro.trial.adapter.adapting import AdapterFile, Asked
from repro.trial.adapter.calls import Calls, load_adapter
from repro.trial.writer import RecordFile

every_padding = pytest.mark.parametrize("padding_mode", ["border", "zeros"])
every_alignment = pytest.mark.parametrize("align_corners", [True, False])
every_axis = pytest.mark.parametrize("axis", [0, 1])

LEVELS = ((5, 9), (4, 8))


class Sizes(NamedTuple):
    B: int
    H: int
    C: int
    N: int
    P: int
    levels: tuple


class Inputs(NamedTuple):
    img: torch.Tensor
    img_shapes: tuple
    sampling_points: torch.Tensor
    attention_weights: torch.Tensor
    grad_out: torch.Tensor


SIZES = Sizes(B=2, H=2, C=3, N=5, P=2, levels=LEVELS)
REPORTED = Sizes(B=4, H=8, C=4, N=1000, P=3, levels=((64, 64), (32, 32), (16, 16), (8, 8)))
AT = (1, 2, 1, 1, 0)
"""A point: batch, query, head, level, point."""
TOLERANCE = {"atol": 1e-3, "rtol": 1e-2}


def draw(sizes, dtype):
    """Inputs distributed as in the reported test."""
    shape = (sizes.B, sizes.N, sizes.H)
    each = (len(sizes.levels), sizes.P)
    pixels = sum(height * width for height, width in sizes.levels)
    img = torch.randn(sizes.B, pixels, sizes.H, sizes.C, dtype=dtype)
    points = torch.rand(*shape, *each, 2, dtype=dtype)
    weights = torch.randn(*shape, each[0] * each[1], dtype=dtype).softmax(-1).view(*shape, *each)
    return Inputs(img, sizes.levels, points, weights, torch.rand(*shape, sizes.C, dtype=dtype))


def arguments_of(inputs, padding_mode, align_corners):
    """As the kit sees a call of the operator."""
    return {
        "img": inputs.img,
        "img_shapes": inputs.img_shapes,
        "sampling_points": inputs.sampling_points,
        "attention_weights": inputs.attention_weights,
        "padding_mode": padding_mode,
        "align_corners": align_corners,
        "grad_out": inputs.grad_out,
    }


def size_of(axis):
    return LEVELS[AT[3]][1 - axis]


def normalised(pixel, size, align_corners):
    return pixel / (size - 1) if align_corners else (pixel + 0.5) / size


def planted(axis, pixel, align_corners, *, dtype=torch.float32, ulps=0):
    """Inputs of which one coordinate lies at a pixel's centre, or so many numbers further on."""
    torch.manual_seed(3)
    inputs = draw(SIZES, dtype)
    s = torch.tensor(normalised(pixel, size_of(axis), align_corners), dtype=dtype)
    for _ in range(abs(ulps)):
        s = torch.nextafter(s, torch.tensor(math.copysign(9.0, ulps), dtype=dtype))
    inputs.sampling_points[(*AT, axis)] = s
    return inputs


def slope(inputs, axis, pixel, padding_mode, align_corners):
    """The reference's own gradient of the planted coordinate, in float64, where it lies at a pixel."""
    wide = Inputs(*(one.double() if isinstance(one, torch.Tensor) else one for one in inputs))
    points = wide.sampling_points.clone()
    points[(*AT, axis)] = normalised(pixel, size_of(axis), align_corners)
    points.requires_grad_()
    out = reference_multiscale_deformable_attention(
        wide.img, wide.img_shapes, points, wide.attention_weights, padding_mode, align_corners
    )
    (out * wide.grad_out).sum().backward()
    return float(points.grad[(*AT, axis)])


@every_alignment
@every_padding
@every_axis
@pytest.mark.parametrize("pixel", [0, 1, 2, "last"])
def test_derivatives_are_those_of_the_formula_to_either_side(pixel, axis, padding_mode, align_corners):
    pixel = size_of(axis) - 1 if pixel == "last" else pixel
    inputs = planted(axis, pixel, align_corners)
    (jump,) = adapter.jumps(arguments_of(inputs, padding_mode, align_corners), "sampling_points", (*AT, axis))
    assert (jump["axis"], jump["level"], jump["unit"], jump["jump"]) == ("xy"[axis], 1, "pixel", pixel)
    for side, step in (("left", -1e-6), ("right", 1e-6)):
        wanted = slope(inputs, axis, pixel + step, padding_mode, align_corners)
        assert jump[side] == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert jump["left"] != jump["right"]


@pytest.mark.parametrize(("pixel", "side"), [(-1, "left"), (8, "right")])
def test_zeros_begin_a_pixel_outside(pixel, side):
    inputs = planted(0, pixel, False)
    (jump,) = adapter.jumps(arguments_of(inputs, "zeros", False), "sampling_points", (*AT, 0))
    assert (jump["jump"], jump[side]) == (pixel, 0)
    (border,) = adapter.jumps(arguments_of(inputs, "border", False), "sampling_points", (*AT, 0))
    assert border["jump"] == (0 if pixel < 0 else 7)
    assert border["distance"] == 1


@pytest.mark.parametrize("ulps", [0, 1, -1, 3])
def test_distances_at_and_next_to_a_jump(ulps):
    """Of 8 pixels pixel 3 lies at 3.5 / 8: a step of the float there is one of the coordinate, times 8."""
    inputs = planted(0, 3, False, ulps=ulps)
    (jump,) = adapter.jumps(arguments_of(inputs, "border", False), "sampling_points", (*AT, 0))
    assert jump["jump"] == 3
    assert jump["distance_ulp"] == abs(ulps)
    assert jump["distance"] == abs(ulps) * 2.0**-22
    assert jump["coordinate"] == 3 + ulps * 2.0**-22


def test_a_point_far_from_any_jump():
    inputs = planted(0, 3.25, False)
    (jump,) = adapter.jumps(arguments_of(inputs, "border", False), "sampling_points", (*AT, 0))
    assert (jump["jump"], jump["distance"]) == (3, 0.25)
    assert jump["distance_ulp"] == 0.25 * 2**22


def test_near_the_first_pixel_the_product_has_the_last_place():
    """Where s * 8 - 1/2 is nearly 0 its own last place is tiny, but what it is computed from is not."""
    inputs = planted(0, 0, False, ulps=1)
    (jump,) = adapter.jumps(arguments_of(inputs, "border", False), "sampling_points", (*AT, 0))
    assert jump["distance_ulp"] == 1


def test_without_a_gradient_of_the_result_there_are_no_derivatives():
    arguments = {**arguments_of(planted(0, 3, False), "border", False), "grad_out": None}
    (jump,) = adapter.jumps(arguments, "sampling_points", (*AT, 0))
    assert (jump["left"], jump["right"], jump["distance"]) == (None, None, 0)


def test_other_gradients_do_not_jump():
    arguments = arguments_of(planted(0, 3, False), "border", False)
    assert adapter.jumps(arguments, "img", (0, 0, 0, 0)) == []
    assert adapter.jumps(arguments, "attention_weights", AT) == []


@pytest.mark.parametrize("s", [math.nan, math.inf])
def test_no_number_has_no_jump(s):
    inputs = planted(0, 3, False)
    inputs.sampling_points[(*AT, 0)] = s
    assert adapter.jumps(arguments_of(inputs, "border", False), "sampling_points", (*AT, 0)) == []


def test_an_axis_of_one_pixel_with_aligned_corners_has_no_jump():
    inputs = draw(SIZES._replace(levels=((3, 1),)), torch.float32)
    arguments = arguments_of(inputs, "border", True)
    assert adapter.jumps(arguments, "sampling_points", (0, 0, 0, 0, 0, 0)) == []
    assert adapter.jumps(arguments, "sampling_points", (0, 0, 0, 0, 0, 1)) != []


def test_names_are_those_of_the_functions():
    for function in (multiscale_deformable_attention, triton_multiscale_deformable_attention):
        assert function.__name__ in adapter.FUNCTION
        assert set(adapter.COORDINATES) <= set(inspect.signature(function).parameters)


# The predicted rate ----------------------------------------------------------------------------------------


@every_alignment
@pytest.mark.parametrize("width", [8, 13, 37, 100])
def test_the_side_that_grid_sample_takes_is_foreseen(width, align_corners):
    """On thousands of numbers around every inner jump, by the slope that grid_sample really has there."""
    arguments = {"sampling_points": torch.zeros(1), "padding_mode": "zeros", "align_corners": align_corners}
    pixels = torch.arange(1, width - 1, dtype=torch.float64)
    jump = pixels / (width - 1) if align_corners else (pixels + 0.5) / width
    s = (jump[:, None] + torch.arange(-256, 256) * 2.0**-30).float()
    foreseen = adapter._side(adapter._aten(s, width, arguments), pixels, arguments, width)
    direct = adapter._side(adapter._direct(s, width, arguments), pixels, arguments, width)
    image = torch.arange(width, dtype=torch.float32).square().view(1, 1, 1, width)
    grid = torch.stack((2 * s - 1, torch.zeros_like(s)), -1)[None].requires_grad_()
    F.grid_sample(image, grid, padding_mode="border", align_corners=align_corners).sum().backward()
    behind = grid.grad[0, :, :, 0] / ((width - 1 if align_corners else width) / 2) > 2 * pixels[:, None]
    assert (foreseen != direct).any(), "the two part nowhere: nothing is tested"
    assert (behind == foreseen).double().mean() > 0.995  # without fused instructions a few fall otherwise


def test_the_rate_of_the_reported_shapes():
    """The closed form: every level loses 2^-26 of the coordinates at each of the jumps below a quarter."""
    torch.manual_seed(0)
    inputs = draw(REPORTED, torch.float32)
    fine = torch.rand(inputs.sampling_points.shape, dtype=torch.float64).float()  # as fine as a GPU's
    rate = adapter.predicted_rate(
        arguments_of(inputs._replace(sampling_points=fine), "border", False), {"atol": 1e-9, "rtol": 1e-9}
    )
    expected = sum(4 * 1000 * 8 * 3 * 2 * (width / 4) * 2.0**-26 for _, width in REPORTED.levels)
    assert rate == pytest.approx(-math.expm1(-expected), rel=0.03)


def test_coordinates_of_the_cpu_never_part_the_two():
    """There `torch.rand` gives multiples of 2^-24, which 2 * s - 1 takes without rounding."""
    torch.manual_seed(0)
    inputs = draw(REPORTED._replace(N=50), torch.float32)
    assert adapter.predicted_rate(arguments_of(inputs, "border", False), TOLERANCE) == 0


def test_fewer_points_fail_less_often_and_a_loose_tolerance_never():
    torch.manual_seed(0)
    inputs = draw(REPORTED._replace(N=200, levels=((16, 64),)), torch.float32)
    fine = torch.rand(inputs.sampling_points.shape, dtype=torch.float64).float()
    arguments = arguments_of(inputs._replace(sampling_points=fine), "border", False)
    few = {name: arguments[name] for name in arguments}
    few |= {name: arguments[name][:, :100] for name in ("sampling_points", "attention_weights", "grad_out")}
    whole, half = (adapter.predicted_rate(each, TOLERANCE) for each in (arguments, few))
    assert half == pytest.approx(whole / 2, rel=0.1)
    assert adapter.predicted_rate(arguments, {"atol": 1e6, "rtol": 0.0}) == 0
    assert 0 < adapter.predicted_rate(arguments, {"atol": 20.0, "rtol": 0.0}) < whole


def test_double_precision_hardly_ever_fails():
    torch.manual_seed(0)
    inputs = draw(REPORTED._replace(N=50, levels=((16, 64),)), torch.float64)
    assert adapter.predicted_rate(arguments_of(inputs, "border", False), TOLERANCE) < 1e-8


# The kit's view of a real call -----------------------------------------------------------------------------


def parting(width):
    """A coordinate just below the first inner jump, which 2 * s - 1 rounds to it and s * width does not."""
    arguments = {"sampling_points": torch.zeros(1), "padding_mode": "zeros", "align_corners": False}
    s = (1.5 / width - torch.arange(1, 64, dtype=torch.float64) * 2.0**-30).float()
    jump = torch.tensor([1.0], dtype=torch.float64)
    sides = [adapter._side(way(s, width, arguments), jump, arguments, width)[0] for way in WAYS]
    return s[(sides[0] != sides[1]).nonzero()[0, 0]]


WAYS = (adapter._direct, adapter._aten)


@pytest.mark.parametrize("padding_mode", ["border", "zeros"])
def test_a_failing_element_lies_at_a_jump_and_both_sides_are_right(tmp_path, padding_mode):
    """The kernel and grid_sample differ at one planted point: one has the left derivative, one the right."""
    inputs = draw(SIZES._replace(levels=((4, 8),)), torch.float32)
    inputs = inputs._replace(sampling_points=inputs.sampling_points.clamp(0.2, 0.9))
    inputs.sampling_points[1, 2, 1, 0, 1, 0] = parting(8)
    known = load_adapter("adapter.py", inspect.getsource(adapter))
    calls = Calls(torch, known)
    file = AdapterFile(RecordFile(tmp_path / "adapter.jsonl"))
    asked = Asked(torch, known, calls, file, 0, 20)

    def gradient(operator):
        points = inputs.sampling_points.clone().requires_grad_()
        out = operator(
            inputs.img, [(4, 8)], points, inputs.attention_weights, padding_mode, align_corners=False
        )
        out.backward(inputs.grad_out)
        return points.grad

    with calls.watching():
        found = gradient(triton_multiscale_deformable_attention)
        wanted = gradient(native_multiscale_deformable_attention)
    asked.note(2, "here", {"actual": found, "expected": wanted, **TOLERANCE}, False)
    asked.end()
    jump, *others = [json.loads(line) for line in (tmp_path / "adapter.jsonl").read_text().splitlines()][1:]
    assert not others
    assert (jump["element"], jump["argument"], jump["jump"]) == ([1, 2, 1, 0, 1, 0], "sampling_points", 1)
    assert 0 < jump["distance_ulp"] <= 1
    element = tuple(jump["element"])
    sides = sorted((jump["left"], jump["right"]))
    assert sorted((float(found[element]), float(wanted[element]))) == pytest.approx(sides, rel=1e-4)
