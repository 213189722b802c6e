"""Deterministic gradients of the image, and the coarse levels' kernel."""

import pytest
import torch
from test_kernels import TOLERANCE, agree, draw, gradients

from msda_triton import reference_multiscale_deformable_attention, triton_multiscale_deformable_attention

LEVELS = [(7, 9), (9, 2), (8, 8)]
SIZES = (1, 1, 5, 131, 2, LEVELS)


def deterministic(*arguments):
    return triton_multiscale_deformable_attention(*arguments, deterministic=True)


def image_gradient(operator, img, points, weights, grad_out, padding_mode="zeros"):
    leaf = img.detach().requires_grad_()
    out = operator(leaf, LEVELS, points, weights, padding_mode, False)
    return torch.autograd.grad(out, leaf, grad_out)[0]


@pytest.fixture(params=[0, 2])
def tiles(request, monkeypatch):
    """Without the coarse levels' kernel, and with it for levels of one or two tiles."""

    def choose(_samples, dtype):
        return 0 if dtype == torch.float64 else request.param

    monkeypatch.setattr("msda_triton.backward.coarse_tiles", choose)


@pytest.mark.parametrize("padding_mode", ["border", "zeros"])
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("operator", [triton_multiscale_deformable_attention, deterministic])
@pytest.mark.usefixtures("tiles")
def test_gradients_are_the_formula(operator, dtype, padding_mode):
    img, points, weights = draw(*SIZES, dtype, 0)
    points = points.to(dtype if dtype == torch.float64 else torch.float32)
    found = gradients(operator, img, points, weights, LEVELS, padding_mode, False)
    inputs = (img.double(), points.double(), weights.double())
    wanted = gradients(reference_multiscale_deformable_attention, *inputs, LEVELS, padding_mode, False)
    agree(found, wanted, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e25])
def test_order_leaves_no_trace(monkeypatch, dtype, scale):
    """The queries in another order are added in another order: the sums are the same to the last bit.

    Without `deterministic` they are not, so the test can fail.
    """
    monkeypatch.setattr("msda_triton.backward.coarse_tiles", lambda *_: 0)
    img, points, weights = draw(*SIZES, dtype, 1)
    points = points.to(dtype)
    grad_out = torch.randn(1, 131, 1, 5, dtype=dtype) * torch.logspace(-4, 4, 131, dtype=dtype)[:, None, None]
    grad_out = grad_out * scale
    order = torch.randperm(131)
    for operator, same in ((deterministic, True), (triton_multiscale_deformable_attention, False)):
        first = image_gradient(operator, img, points, weights, grad_out)
        again = image_gradient(operator, img, points[:, order], weights[:, order], grad_out[:, order])
        assert torch.equal(first, again) == same
        torch.testing.assert_close(again, first, rtol=1e-3, atol=1e-4 * float(first.abs().max()))


def test_a_pixel_to_which_its_neighbours_points_alone_come_has_a_grid(monkeypatch):
    """All points lie between the same four pixels: three of them are no point's upper left one."""
    monkeypatch.setattr("msda_triton.backward.coarse_tiles", lambda *_: 0)
    img, points, weights = draw(*SIZES, torch.float32, 7)
    sizes = torch.tensor(LEVELS).flip(-1)[:, None]
    points = ((torch.rand(points.shape) + 1.5) / sizes).float()
    grad_out = torch.randn(1, 131, 1, 5)
    order = torch.randperm(131)
    first = image_gradient(deterministic, img, points, weights, grad_out)
    again = image_gradient(deterministic, img, points[:, order], weights[:, order], grad_out[:, order])
    assert torch.equal(first, again)


def test_use_deterministic_algorithms_is_followed(monkeypatch):
    monkeypatch.setattr("msda_triton.backward.coarse_tiles", lambda *_: 0)
    img, points, weights = draw(*SIZES, torch.float64, 2)
    grad_out = torch.randn(1, 131, 1, 5, dtype=torch.float64)
    wanted = image_gradient(deterministic, img, points, weights, grad_out)
    torch.use_deterministic_algorithms(True)
    try:
        found = image_gradient(triton_multiscale_deformable_attention, img, points, weights, grad_out)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(found, wanted)
    plain = image_gradient(triton_multiscale_deformable_attention, img, points, weights, grad_out)
    assert not torch.equal(plain, wanted)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_pixels_without_a_point_get_zero(dtype):
    """Their sums are not read, and memory of halves that nobody wrote to would show as NaN."""
    img, points, weights = draw(1, 3, 5, 4, 2, LEVELS, dtype, 5)
    inputs = (img, points.to(dtype if dtype == torch.float64 else torch.float32), weights)
    plain = gradients(triton_multiscale_deformable_attention, *inputs, LEVELS, "zeros", False)[1]
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.utils.deterministic.fill_uninitialized_memory
        found = gradients(triton_multiscale_deformable_attention, *inputs, LEVELS, "zeros", False)[1]
    finally:
        torch.use_deterministic_algorithms(False)
    assert (plain == 0).any()
    assert torch.equal(found == 0, plain == 0)
    torch.testing.assert_close(found, plain, rtol=1e-2, atol=1e-6 if dtype.itemsize > 2 else 1e-2)


def test_weights_whose_share_underflows_are_added_in_any_order():
    """The largest weight sets the unit: divided by it they are 0, and no sum may be left without a grid."""
    img, points, weights = draw(*SIZES, torch.float32, 6)
    weights = weights * 1e-44
    points = points.float()
    points[:, 0], weights[:, 0] = -9, 1e3  # far outside: counts for the unit alone
    grad_out = torch.randn(1, 131, 1, 5) * torch.logspace(10, 30, 131)[:, None, None]
    order = torch.randperm(131)
    first = image_gradient(deterministic, img, points, weights, grad_out)
    again = image_gradient(deterministic, img, points[:, order], weights[:, order], grad_out[:, order])
    assert torch.equal(first, again)


def test_zero_weights_and_gradients():
    img, points, weights = draw(*SIZES, torch.float32, 3)
    zeros = torch.zeros(1, 131, 1, 5)
    assert not image_gradient(deterministic, img, points.float(), torch.zeros_like(weights), zeros + 1).any()
    assert not image_gradient(deterministic, img, points.float(), weights, zeros).any()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # numpy interprets inf * 0 aloud
def test_gradients_that_are_not_finite_show():
    img, points, weights = draw(*SIZES, torch.float32, 4)
    for bad in (float("nan"), float("inf")):
        grad_out = torch.ones(1, 131, 1, 5)
        grad_out[0, 0, 0, 0] = bad
        assert not image_gradient(deterministic, img, points.float(), weights, grad_out).isfinite().all()


def test_too_many_points_are_refused():
    from msda_triton.exact import rounding_grids
    from msda_triton.sizes import Options, Sizes

    sizes = Sizes(1, 1, 1, 1, 2**21 + 1, 1, 2)
    nothing = torch.empty(0)
    with pytest.raises(ValueError, match="2097153 queries with 2 points a level are too many"):
        rounding_grids(nothing, nothing, nothing, nothing, sizes, Options(False, False, False))
