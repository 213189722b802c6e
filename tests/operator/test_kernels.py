"""The kernels against the formula: drawn shapes, options and types, gradients of both orders, odd inputs."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_triton import (
    native_multiscale_deformable_attention,
    reference_multiscale_deformable_attention,
    triton_multiscale_deformable_attention,
)

TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 2e-5, torch.float64: 1e-12}


def draw(B, H, C, N, P, levels, dtype, seed, align_corners=False):  # noqa: N803
    """img, points and weights; points lie off every pixel's centre, in range and far out."""
    generator = torch.Generator().manual_seed(seed)
    pixels = sum(height * width for height, width in levels)
    img = torch.randn(B, pixels, H, C, generator=generator, dtype=torch.float64)
    size = torch.tensor(levels).flip(-1)[:, None]
    whole = (torch.rand(B, N, H, len(levels), P, 2, generator=generator) * (size + 4)).floor() - 2
    part = torch.randint(1, 4, whole.shape, generator=generator) / 4
    pixel = whole.double() + part
    points = pixel / (size - 1).clamp(min=1) if align_corners else (pixel + 0.5) / size
    weights = torch.randn(points.shape[:-1], generator=generator, dtype=torch.float64)
    return img.to(dtype), points, weights.to(dtype)


def gradients(operator, img, points, weights, *options):
    leaves = [tensor.detach().requires_grad_() for tensor in (img, points, weights)]
    out = operator(leaves[0], options[0], leaves[1], leaves[2], *options[1:])
    seed = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view_as(out).to(out.dtype)
    return (out.detach(), *torch.autograd.grad(out, leaves, seed))


def agree(found, wanted, dtype):
    for name, tensor, truth in zip(("out", "img", "points", "weights"), found, wanted, strict=True):
        largest = float(truth.abs().max()) if truth.numel() else 0.0
        torch.testing.assert_close(
            tensor.double(),
            truth,
            rtol=0,
            atol=TOLERANCE[dtype] * max(1.0, largest),
            msg=partial(named, name),
        )


def named(name, text):
    return f"{name}: {text}"


sizes = st.fixed_dictionaries(
    {
        "B": st.integers(1, 2),
        "H": st.integers(1, 2),
        "C": st.sampled_from([1, 3, 30, 71, 130]),
        "N": st.sampled_from([0, 1, 5, 128, 131]),
        "P": st.sampled_from([1, 2, 3, 9, 11]),
        "levels": st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=3),
        "dtype": st.sampled_from(list(TOLERANCE)),
        "seed": st.integers(0, 2**31),
    }
)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(sizes, st.sampled_from(["border", "zeros"]), st.booleans())
def test_drawn_shapes(drawn, padding_mode, align_corners):
    """Points in float32 beside halves: a half has no room for both the pixel and the place within it."""
    dtype = drawn["dtype"]
    img, points, weights = draw(**drawn, align_corners=align_corners)
    points = points.to(dtype if dtype == torch.float64 else torch.float32)
    options = (drawn["levels"], padding_mode, align_corners)
    found = gradients(triton_multiscale_deformable_attention, img, points, weights, *options)
    inputs = (img.double(), points.double(), weights.double())
    assert [tensor.dtype for tensor in found] == [dtype, dtype, points.dtype, dtype]
    agree(found, gradients(reference_multiscale_deformable_attention, *inputs, *options), dtype)


LEVELS = [(5, 3), (2, 4)]


@pytest.mark.parametrize("padding_mode", ["border", "zeros"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_gradcheck(padding_mode, align_corners):
    drawn = draw(1, 1, 2, 3, 2, LEVELS, torch.float64, 0, align_corners)
    img, points, weights = (t.requires_grad_() for t in drawn)

    def operator(img, points, weights):
        return triton_multiscale_deformable_attention(
            img, LEVELS, points, weights, padding_mode, align_corners
        )

    assert torch.autograd.gradcheck(operator, (img, points, weights), fast_mode=True)
    assert torch.autograd.gradgradcheck(operator, (img, points, weights), fast_mode=True)


@pytest.mark.parametrize("needed", [(0,), (1,), (2,), (0, 2)])
def test_frozen_inputs(needed):
    """Only what is asked for is computed, and it is the same."""
    inputs = draw(1, 1, 3, 4, 2, LEVELS, torch.float64, 1)
    full = gradients(triton_multiscale_deformable_attention, *inputs, LEVELS, "zeros", False)
    leaves = [tensor.clone().requires_grad_(index in needed) for index, tensor in enumerate(inputs)]
    out = triton_multiscale_deformable_attention(leaves[0], LEVELS, leaves[1], leaves[2], "zeros", False)
    out.backward(torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view_as(out))
    for index, leaf in enumerate(leaves):
        assert (leaf.grad is not None) == (index in needed)
        if leaf.grad is not None:
            torch.testing.assert_close(leaf.grad, full[index + 1])


def test_strided_inputs():
    inputs = draw(2, 2, 3, 4, 2, LEVELS, torch.float64, 2)
    strided = [tensor.transpose(0, 1).contiguous().transpose(0, 1) for tensor in inputs]
    assert not any(tensor.is_contiguous() for tensor in strided)
    options = (torch.tensor(LEVELS).t().contiguous().t(), "border", False)
    found = gradients(triton_multiscale_deformable_attention, *strided, *options)
    agree(found, gradients(reference_multiscale_deformable_attention, *inputs, *options), torch.float64)


def test_expanded_gradient():
    """`sum().backward()` hands over a gradient without strides."""
    img, points, weights = (t.requires_grad_() for t in draw(1, 1, 3, 4, 2, LEVELS, torch.float64, 3))
    for operator in (triton_multiscale_deformable_attention, reference_multiscale_deformable_attention):
        operator(img, LEVELS, points, weights, "border", False).sum().backward()
    twice = img.grad.clone()
    img.grad = None
    reference_multiscale_deformable_attention(img, LEVELS, points, weights, "border", False).sum().backward()
    torch.testing.assert_close(twice, 2 * img.grad)


def test_64_bit_offsets(monkeypatch):
    """The wide kernel, which only huge images get, computes the same."""
    from msda_triton.sizes import Sizes

    inputs = draw(2, 2, 3, 4, 2, LEVELS, torch.float64, 4)
    narrow = gradients(triton_multiscale_deformable_attention, *inputs, LEVELS, "zeros", False)
    monkeypatch.setattr(Sizes, "wide", True)
    wide = gradients(triton_multiscale_deformable_attention, *inputs, LEVELS, "zeros", False)
    for tensor, truth in zip(wide, narrow, strict=True):
        torch.testing.assert_close(tensor, truth, rtol=0, atol=0)


def test_shapes_that_the_image_does_not_hold(monkeypatch):
    """Shapes on a GPU are not read on the host; the kernel stays within the image and says NaN."""
    monkeypatch.setattr("msda_triton.checks._check_levels", lambda *_: None)
    img, points, weights = draw(1, 1, 3, 4, 2, LEVELS, torch.float64, 5)
    found = gradients(
        triton_multiscale_deformable_attention, img[:, :20], points, weights, LEVELS, "zeros", False
    )
    assert all(tensor.isnan().any() for tensor in (found[0], found[3]))


@pytest.mark.parametrize("padding_mode", ["border", "zeros"])
@pytest.mark.parametrize(("align_corners", "levels"), [(True, [(33, 100)]), (False, [(32, 128)])])
def test_aten_arithmetic(padding_mode, align_corners, levels):
    """A few roundings off a pixel's centre `aten` takes grid_sample's side everywhere, `direct` does not.

    Of sizes that are no power of two, unaligned, grid_sample rounds otherwise on the CPU than on a GPU.
    """
    generator = torch.Generator().manual_seed(0)
    size = torch.tensor(levels).flip(-1)[:, None].double()
    pixel = (torch.rand(1, 1000, 1, 1, 1, 2, generator=generator) * size).floor()
    points = (pixel / (size - 1) if align_corners else (pixel + 0.5) / size).float()
    points = torch.nextafter(points, torch.rand(points.shape, generator=generator).round() * 2)
    img = torch.randn(1, levels[0][0] * levels[0][1], 1, 1, generator=generator)
    inputs = (img, points, torch.ones(points.shape[:-1]), levels, padding_mode, align_corners)
    found = gradients(partial(triton_multiscale_deformable_attention, arithmetic="aten"), *inputs)
    wanted = gradients(native_multiscale_deformable_attention, *inputs)
    torch.testing.assert_close(found[2], wanted[2], rtol=1e-2, atol=1e-3)
    direct = gradients(triton_multiscale_deformable_attention, *inputs)
    assert not torch.allclose(direct[2], wanted[2], rtol=1e-2, atol=1e-3)
