"""The operator on a GPU, at full size."""

import functools
import importlib.util
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

from msda_triton import (  # noqa: E402
    native_multiscale_deformable_attention,
    reference_multiscale_deformable_attention,
    triton_multiscale_deformable_attention,
)

SUITE = Path(__file__).parent.parent / "suite"
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")]
every_padding = pytest.mark.parametrize("padding_mode", ["border", "zeros"])
every_alignment = pytest.mark.parametrize("align_corners", [True, False])


@pytest.fixture(scope="module")
def cases():
    """The suite's helpers."""
    spec = importlib.util.spec_from_file_location("cases", SUITE / "cases.py")
    module = sys.modules["cases"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@every_padding
@every_alignment
def test_full_size_against_float64(cases, dtype, padding_mode, align_corners):
    """The reported shapes, 20 seeds in float32; points in float32 beside halves."""
    margin, tolerance = {
        torch.float16: (1e-3, 2e-3),
        torch.bfloat16: (1e-3, 1.6e-2),
        torch.float32: (1e-3, 3e-5),
        torch.float64: (1e-6, 1e-12),
    }[dtype]
    for seed in range(20 if dtype == torch.float32 else 3):
        torch.manual_seed(seed)
        inputs = cases.draw(cases.REPORTED, torch.float64 if dtype == torch.float64 else torch.float32)
        points = inputs.sampling_points * 1.6 - 0.3
        points = cases.away_from_jumps(points, inputs.img_shapes, align_corners, margin)
        half = [tensor.to(dtype) for tensor in (inputs.img, inputs.attention_weights, inputs.grad_out)]
        inputs = cases.Inputs(half[0], inputs.img_shapes, points, half[1], half[2])
        found = cases.run(triton_multiscale_deformable_attention, inputs, padding_mode, align_corners)
        double = cases.in_double(inputs)
        wanted = cases.run(native_multiscale_deformable_attention, double, padding_mode, align_corners)
        for tensor, truth in zip(found, wanted, strict=True):
            allowed = tolerance * max(1.0, float(truth.abs().max()))
            torch.testing.assert_close(tensor.double(), truth, rtol=0, atol=allowed)


def compare_with_grid_sample(cases, seed, padding_mode, align_corners):
    """The reported test, with its tolerance, in grid_sample's arithmetic."""
    operator = functools.partial(triton_multiscale_deformable_attention, arithmetic="aten")
    torch.manual_seed(seed)
    inputs = cases.draw(cases.REPORTED, torch.float32)
    found = cases.run(operator, inputs, padding_mode, align_corners)
    with torch.backends.cudnn.flags(enabled=False):  # cuDNN, used for aligned zeros, rounds its own way
        wanted = cases.run(native_multiscale_deformable_attention, inputs, padding_mode, align_corners)
    for tensor, truth in zip(found, wanted, strict=True):
        torch.testing.assert_close(tensor, truth, atol=1e-3, rtol=1e-2)


@every_padding
@every_alignment
def test_aten_arithmetic_finds_the_same_neighbours(cases, padding_mode, align_corners):
    """Over 20 seeds of the reported test, gradients agree with grid_sample's in float32 at every point."""
    for seed in range(20):
        compare_with_grid_sample(cases, seed, padding_mode, align_corners)


@pytest.mark.slow
def test_5000_seeds_of_the_reported_test(cases):
    """With the kernels' own arithmetic one in twelve fails."""
    for seed in range(5000):
        compare_with_grid_sample(cases, seed, "border", False)


def test_gradients_without_atomics_are_the_same_every_time(cases):
    torch.manual_seed(0)
    inputs = cases.draw(cases.REPORTED, torch.float32)
    first = cases.run(triton_multiscale_deformable_attention, inputs, "border", False)
    for _ in range(20):
        again = cases.run(triton_multiscale_deformable_attention, inputs, "border", False)
        assert torch.equal(again[0], first[0])
        assert torch.equal(again[2], first[2])
        assert torch.equal(again[3], first[3])


@pytest.mark.parametrize("channels", [1, 30, 71, 1025])
@pytest.mark.parametrize("points", [1, 3, 9, 11])
def test_odd_sizes(cases, channels, points):
    """Channels that fill no block or several, in the kernel that a GPU runs."""
    torch.manual_seed(0)
    sizes = cases.UNEVEN._replace(C=channels, P=points)
    inputs = cases.draw(sizes, torch.float64)
    found = cases.run(triton_multiscale_deformable_attention, inputs, "zeros", False)
    wanted = cases.run(reference_multiscale_deformable_attention, inputs, "zeros", False)
    for tensor, truth in zip(found, wanted, strict=True):
        torch.testing.assert_close(tensor, truth, rtol=1e-10, atol=1e-10)


def test_a_profiler_sees_the_tensors_of_every_launch(cases, monkeypatch):
    """Launches take a shorter way where nobody looks, with the same result."""
    from triton.compiler import CompiledKernel

    torch.manual_seed(0)
    inputs = cases.draw(cases.UNEVEN, torch.float32)
    for _ in range(2):  # compiled, then launched past Triton's argument handling
        unwatched = cases.run(triton_multiscale_deformable_attention, inputs, "border", False)
    seen = []
    original = CompiledKernel.__getitem__

    def launch(self, grid):
        return lambda *arguments: (seen.append(arguments), original(self, grid)(*arguments))

    monkeypatch.setattr(CompiledKernel, "__getitem__", launch)
    watched = cases.run(triton_multiscale_deformable_attention, inputs, "border", False)
    assert len(seen) == 2
    assert all(isinstance(arguments[0], torch.Tensor) for arguments in seen)
    for index in (0, 2, 3):  # the image's gradient is summed in any order
        assert torch.equal(watched[index], unwatched[index])


def test_offsets_beyond_31_bits():
    """An image of 2^31 elements and a few: its last pixels are reached, its first ones left alone."""
    if torch.cuda.get_device_properties(0).total_memory < 24 << 30:
        pytest.skip("needs 24 GiB of GPU memory")
    height, width, heads, channels = 8193, 8192, 1, 32
    img = torch.zeros(1, height * width, heads, channels, device="cuda", dtype=torch.float16)
    img[0, -1] = 1.0
    points = torch.tensor([1 - 0.5 / width, 1 - 0.5 / height], device="cuda").view(1, 1, 1, 1, 1, 2)
    weights = torch.ones(1, 1, 1, 1, 1, device="cuda", dtype=torch.float16)
    shapes = torch.tensor([[height, width]], device="cuda")
    out = triton_multiscale_deformable_attention(img, shapes, points, weights, "border", True)
    inner = triton_multiscale_deformable_attention(
        img, shapes, torch.ones_like(points), weights, "border", True
    )
    torch.testing.assert_close(inner, torch.ones_like(inner))
    assert bool(((out >= 0) & (out <= 1)).all())


def test_gradients_beyond_31_bits():
    """The backward pass reaches the last pixels of an image of 2^31 elements and a few, and no others."""
    if torch.cuda.get_device_properties(0).total_memory < 40 << 30:
        pytest.skip("needs 40 GiB of GPU memory")
    height, width, heads, channels = 8193, 8192, 1, 32
    img = torch.zeros(1, height * width, heads, channels, device="cuda", dtype=torch.float16)
    img[0, -1] = 1.0
    img.requires_grad_()
    points = torch.ones(1, 1, 1, 1, 1, 2, device="cuda", requires_grad=True)
    weights = torch.ones(1, 1, 1, 1, 1, device="cuda", dtype=torch.float16, requires_grad=True)
    shapes = torch.tensor([[height, width]], device="cuda")
    out = triton_multiscale_deformable_attention(img, shapes, points, weights, "border", True)
    of_img, of_points, of_weights = torch.autograd.grad(out, (img, points, weights), torch.ones_like(out))
    assert bool((of_img[0, -1] == 1).all())
    assert int(of_img.count_nonzero()) == channels
    assert float(of_weights) == channels
    assert bool(of_points.isfinite().all())
