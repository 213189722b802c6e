"""What every cell runs: the operator in Triton against torch's grid_sample and against the formula."""

import itertools
import math

import pytest
import torch
from cases import (
    DEVICE,
    LITTLE,
    RUNNABLE,
    UNEVEN,
    WHY_NOT,
    away_from_jumps,
    draw,
    in_double,
    reported_sizes,
    run,
)

from msda_triton import (
    MultiscaleDeformableAttention,
    multiscale_deformable_attention,
    native_multiscale_deformable_attention,
    reference_multiscale_deformable_attention,
    triton_multiscale_deformable_attention,
)

# Triton 3.9 says of every compilation that a default will change.
pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")

needs_kernels = pytest.mark.skipif(not RUNNABLE, reason=WHY_NOT)
every_padding = pytest.mark.parametrize("padding_mode", ["border", "zeros"])
every_alignment = pytest.mark.parametrize("align_corners", [True, False])
every_dtype = pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=lambda dtype: str(dtype)[6:]
)
reported_dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])

# Pixels to keep from a jump: many times the rounding of a coordinate on the widest level.
MARGIN = {torch.float16: 0.06, torch.bfloat16: 0.2, torch.float32: 1e-3, torch.float64: 1e-6}
# Against float64, in units of each tensor's largest magnitude: a few roundings of the type that is stored.
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 2e-5, torch.float64: 1e-12}


@needs_kernels
@every_alignment
@every_padding
@reported_dtypes
def test_backward(dtype, padding_mode, align_corners, record_property):
    """The reported test: it fails now and then in float32, as it does not know where the derivative jumps."""
    inputs = draw(reported_sizes(record_property), dtype)
    out, grad_img, grad_points, grad_weights = run(
        triton_multiscale_deformable_attention, inputs, padding_mode, align_corners
    )
    true_out, true_grad_img, true_grad_points, true_grad_weights = run(
        native_multiscale_deformable_attention, inputs, padding_mode, align_corners
    )
    close = {"atol": 1e-3, "rtol": 1e-2} if dtype == torch.float32 else {"atol": 1e-8, "rtol": 1e-8}
    torch.testing.assert_close(out, true_out, **close)
    torch.testing.assert_close(grad_img, true_grad_img, **close)
    torch.testing.assert_close(grad_points, true_grad_points, **close)
    torch.testing.assert_close(grad_weights, true_grad_weights, **close)


@needs_kernels
@every_alignment
@every_padding
@reported_dtypes
def test_forward(dtype, padding_mode, align_corners, record_property):
    inputs = draw(reported_sizes(record_property), dtype)
    out = triton_multiscale_deformable_attention(*inputs[:4], padding_mode, align_corners)
    true_out = native_multiscale_deformable_attention(*inputs[:4], padding_mode, align_corners)
    close = {"atol": 1e-5, "rtol": 1e-4} if dtype == torch.float32 else {"atol": 1e-10, "rtol": 1e-10}
    torch.testing.assert_close(out, true_out, **close)


@needs_kernels
@every_alignment
@every_padding
@every_dtype
def test_backward_away_from_jumps(dtype, padding_mode, align_corners):
    """Every gradient against float64, from 0.3 outside the image on one side to 0.3 on the other."""
    check_away_from_jumps(triton_multiscale_deformable_attention, dtype, padding_mode, align_corners)


def check_away_from_jumps(operator, dtype, padding_mode, align_corners):
    """`operator`'s output and gradients are the formula's, at points where the derivative is continuous."""
    inputs = draw(UNEVEN, dtype)
    points = (inputs.sampling_points.double() * 1.6 - 0.3).to(dtype)
    points = away_from_jumps(points, inputs.img_shapes, align_corners, MARGIN[dtype])
    inputs = inputs._replace(sampling_points=points)
    found = run(operator, inputs, padding_mode, align_corners)
    wanted = run(reference_multiscale_deformable_attention, in_double(inputs), padding_mode, align_corners)
    for name, tensor, truth in zip(("out", "img", "points", "weights"), found, wanted, strict=True):
        allowed = TOLERANCE[dtype] * max(1.0, float(truth.abs().max()))
        torch.testing.assert_close(
            tensor.double(), truth, rtol=0, atol=allowed, msg=lambda text, name=name: f"{name}: {text}"
        )


@needs_kernels
@every_alignment
@every_padding
def test_backward_at_jumps(padding_mode, align_corners):
    """At a pixel's centre the derivative is the one towards the next pixel, and none at the border."""
    check_at_jumps(triton_multiscale_deformable_attention, padding_mode, align_corners)


def check_at_jumps(operator, padding_mode, align_corners):
    """Sizes for which every pixel coordinate, from one outside to one outside, is exactly whole."""
    levels = ((9, 17), (5, 3), (1, 2)) if align_corners else ((8, 16), (4, 2), (1, 1))
    inputs = draw(UNEVEN._replace(levels=levels), torch.float64)
    size = inputs.img_shapes.flip(-1)[:, None]  # [L, 1, 2]
    pixel = torch.floor(inputs.sampling_points * (size + 2)) - 1  # -1 to size
    points = pixel / (size - 1).clamp(min=1) if align_corners else (pixel + 0.5) / size
    inputs = inputs._replace(sampling_points=points)
    found = run(operator, inputs, padding_mode, align_corners)
    wanted = run(reference_multiscale_deformable_attention, inputs, padding_mode, align_corners)
    for tensor, truth in zip(found, wanted, strict=True):
        torch.testing.assert_close(tensor, truth, rtol=1e-10, atol=1e-10)


@needs_kernels
@every_alignment
@every_padding
@pytest.mark.parametrize("far", [2.0, 1e9, float("inf")])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # numpy interprets inf * 0 aloud
def test_points_out_of_range(far, padding_mode, align_corners):
    """Far outside, zeros padding gives nothing and border padding the outermost pixel, without a gradient."""
    inputs = draw(UNEVEN._replace(B=1, H=1), torch.float32)
    sign = torch.where(inputs.sampling_points < 0.5, -1.0, 1.0)
    inputs = inputs._replace(sampling_points=sign * far)
    found = run(triton_multiscale_deformable_attention, inputs, padding_mode, align_corners)
    wanted = run(reference_multiscale_deformable_attention, in_double(inputs), padding_mode, align_corners)
    for tensor, truth in zip(found, wanted, strict=True):
        torch.testing.assert_close(tensor.double(), truth, rtol=1e-4, atol=1e-4)
    assert not found[2].any()


@needs_kernels
@every_padding
def test_nan_points_sample_nothing(padding_mode):
    inputs = draw(UNEVEN._replace(B=1, H=1), torch.float32)
    nan = inputs._replace(sampling_points=torch.full_like(inputs.sampling_points, float("nan")))
    for tensor in run(triton_multiscale_deformable_attention, nan, padding_mode, False):
        assert not tensor.any()


@every_alignment
@every_padding
def test_native_is_the_formula(padding_mode, align_corners):
    """Against loops over batches, queries, heads, levels, points and corners."""
    inputs = draw(LITTLE, torch.float64, "cpu")
    points = inputs.sampling_points * 1.6 - 0.3
    out = native_multiscale_deformable_attention(
        inputs.img, inputs.img_shapes, points, inputs.attention_weights, padding_mode, align_corners
    )
    wanted = torch.zeros_like(out)
    starts = [0, 6]
    for b, n, h, level, p in itertools.product(*map(range, inputs.attention_weights.shape)):
        height, width = LITTLE.levels[level]
        x, y = points[b, n, h, level, p].tolist()
        for pixel, share in corners(x, y, height, width, padding_mode == "border", align_corners):
            weight = inputs.attention_weights[b, n, h, level, p] * share
            wanted[b, n, h] += weight * inputs.img[b, starts[level] + pixel, h]
    torch.testing.assert_close(out, wanted, rtol=1e-12, atol=1e-12)


def corners(x, y, height, width, border, align_corners):
    """(pixel, share) of the neighbours of the normalised point (x, y) that lie on the level."""
    x = x * (width - 1) if align_corners else x * width - 0.5
    y = y * (height - 1) if align_corners else y * height - 0.5
    if border:
        x, y = min(max(x, 0.0), width - 1.0), min(max(y, 0.0), height - 1.0)
    for row, column in itertools.product(
        (math.floor(y), math.floor(y) + 1), (math.floor(x), math.floor(x) + 1)
    ):
        if 0 <= row < height and 0 <= column < width:
            yield row * width + column, (1 - abs(x - column)) * (1 - abs(y - row))


@every_alignment
@every_padding
def test_reference_is_native(padding_mode, align_corners):
    """The formula in torch and grid_sample agree, gradients included, where the derivative is continuous."""
    inputs = draw(UNEVEN, torch.float64, "cpu")
    points = away_from_jumps(inputs.sampling_points * 1.6 - 0.3, inputs.img_shapes, align_corners, 1e-6)
    inputs = inputs._replace(sampling_points=points)
    found = run(reference_multiscale_deformable_attention, inputs, padding_mode, align_corners)
    wanted = run(native_multiscale_deformable_attention, inputs, padding_mode, align_corners)
    for tensor, truth in zip(found, wanted, strict=True):
        torch.testing.assert_close(tensor, truth, rtol=1e-10, atol=1e-10)


@needs_kernels
def test_module():
    """Gradients reach every parameter; a masked pixel has no value; boxes are accepted."""
    module, (img, queries, reference_points) = small_module()
    mask = torch.ones(img.shape[:2], dtype=torch.bool, device=DEVICE)
    out = module(img, LITTLE.levels, queries, reference_points)
    assert out.shape == queries.shape
    out.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())
    masked = module(img, LITTLE.levels, queries, reference_points, padding_mask=mask)
    torch.testing.assert_close(masked, module.output_proj.bias.expand_as(masked))
    boxes = torch.cat((reference_points, torch.full_like(reference_points, 0.2)), -1)
    assert module(img, LITTLE.levels, queries, boxes).shape == queries.shape


@needs_kernels
def test_autocast():
    """Under autocast projections give bfloat16, points stay in float32, the result stays close."""
    module, arguments = small_module()
    img, queries, reference_points = arguments
    full = module(img, LITTLE.levels, queries, reference_points)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        half = module(img, LITTLE.levels, queries, reference_points)
    assert half.dtype == torch.bfloat16
    half.float().sum().backward()
    torch.testing.assert_close(half.float(), full, atol=0.1, rtol=0.1)


def small_module():
    """A module, and its img, queries and reference points."""
    torch.manual_seed(0)
    module = MultiscaleDeformableAttention(16, 8, len(LITTLE.levels), 2, 2, "zeros", False).to(DEVICE)
    img = torch.randn(2, 6 + 20, 16, device=DEVICE)
    return module, (img, torch.randn(2, 5, 16, device=DEVICE), torch.rand(2, 5, 2, device=DEVICE))


def test_dispatch(monkeypatch):
    """Without a GPU and without the interpreter, the native implementation runs."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    inputs = draw(LITTLE, torch.float32, "cpu")
    out = multiscale_deformable_attention(*inputs[:4], "border", False)
    wanted = native_multiscale_deformable_attention(*inputs[:4], "border", False)
    torch.testing.assert_close(out, wanted, rtol=0, atol=0)
