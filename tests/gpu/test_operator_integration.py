"""The operator on a GPU where people use it: compiled, captured, autocast, in another library's model."""

import functools
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

from msda_triton import (  # noqa: E402
    MultiscaleDeformableAttention,
    ms_deform_attn,
    reference_multiscale_deformable_attention,
    triton_multiscale_deformable_attention,
)

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")]
LEVELS = ((21, 13), (16, 16), (9, 8), (1, 1))
PIXELS = sum(height * width for height, width in LEVELS)
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 3e-5}


def inputs(dtype, queries=2500, points=4, channels=32):
    """img, points, weights and a gradient; points reach outside, and lie off the jumps of the derivative."""
    generator = torch.Generator("cuda").manual_seed(0)
    size = torch.tensor(LEVELS, device="cuda").flip(-1)[:, None]
    place = (2, queries, 2, len(LEVELS), points)
    pixel = (torch.rand(*place, 2, device="cuda", generator=generator) * (size + 2)).floor() - 0.6
    img = torch.randn(2, PIXELS, 2, channels, device="cuda", generator=generator, dtype=torch.float64)
    weights = torch.rand(place, device="cuda", generator=generator, dtype=torch.float64)
    grad_out = torch.randn(2, queries, 2, channels, device="cuda", generator=generator, dtype=torch.float64)
    where = (pixel + 0.5) / size
    points_dtype = torch.float64 if dtype == torch.float64 else torch.float32
    return img.to(dtype), where.to(points_dtype), weights.to(dtype), grad_out.to(dtype)


def attention(img, points, weights, **options):
    return triton_multiscale_deformable_attention(img, LEVELS, points, weights, "zeros", False, **options)


def gradients(operator, img, points, weights, grad_out):
    leaves = [tensor.detach().clone().requires_grad_() for tensor in (img, points, weights)]
    out = operator(*leaves)
    return (out.detach(), *torch.autograd.grad(out, leaves, grad_out))


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_many_queries_against_float64(dtype, deterministic):
    """Enough of them for the coarse levels' own kernel."""
    tensors = inputs(dtype)
    operator = functools.partial(attention, deterministic=deterministic)
    found = gradients(operator, *tensors)
    img, points, weights, grad_out = (tensor.double() for tensor in tensors)
    wanted = gradients(
        lambda i, p, w: reference_multiscale_deformable_attention(i, LEVELS, p, w, "zeros", False),
        *(img, points, weights, grad_out),
    )
    for tensor, truth in zip(found, wanted, strict=True):
        allowed = TOLERANCE[dtype] * max(1.0, float(truth.abs().max()))
        torch.testing.assert_close(tensor.double(), truth, rtol=0, atol=allowed)


@pytest.mark.parametrize("dtype", [*TOLERANCE, torch.float64], ids=str)
def test_deterministic_over_100_runs(dtype):
    tensors = inputs(dtype)
    operator = functools.partial(attention, deterministic=True)
    first = gradients(operator, *tensors)
    for _ in range(100):
        for tensor, same in zip(gradients(operator, *tensors), first, strict=True):
            assert torch.equal(tensor, same)
    torch.use_deterministic_algorithms(True)
    try:
        again = gradients(attention, *tensors)
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(tensor, same) for tensor, same in zip(again, first, strict=True))


@pytest.mark.filterwarnings("default")  # torch, compiling, warns of itself
def test_compiled_in_one_graph():
    *tensors, grad_out = inputs(torch.float32)

    def around(img, points, weights):
        return attention(img * 2, points, weights).relu()

    compiled = torch.compile(around, fullgraph=True)
    for found, wanted in zip(
        gradients(compiled, *tensors, grad_out), gradients(around, *tensors, grad_out), strict=True
    ):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("deterministic", [False, True])
def test_captured_in_a_cuda_graph(deterministic):
    """Forward and backward, captured once, follow new numbers in the same places."""
    tensors = inputs(torch.float32)
    operator = functools.partial(attention, deterministic=deterministic)
    leaves = [tensor.clone().requires_grad_() for tensor in tensors[:3]]
    grad_out = tensors[3].clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.autograd.grad(operator(*leaves), leaves, grad_out)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = operator(*leaves)
        found = torch.autograd.grad(out, leaves, grad_out)
    with torch.no_grad():
        leaves[0].mul_(-1)
        leaves[2].mul_(0.5)
        grad_out.add_(1)
    graph.replay()
    wanted = gradients(operator, *leaves, grad_out)
    for tensor, truth in zip((out, *found), wanted, strict=True):
        torch.testing.assert_close(tensor, truth, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
def test_module_under_autocast(half):
    torch.manual_seed(0)
    module = MultiscaleDeformableAttention(64, 64, len(LEVELS), 8, 4, "zeros", False).cuda()
    img = torch.randn(2, PIXELS, 64, device="cuda")
    queries, places = torch.randn(2, 100, 64, device="cuda"), torch.rand(2, 100, 2, device="cuda")
    full = module(img, LEVELS, queries, places)
    with torch.autocast("cuda", dtype=half):
        found = module(img, LEVELS, queries, places)
    assert found.dtype == half
    found.float().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())
    torch.testing.assert_close(found.float(), full, atol=0.05, rtol=0.05)


def test_gradcheck():
    tensors = inputs(torch.float64, queries=3, points=1, channels=2)
    leaves = [tensor.requires_grad_() for tensor in tensors[:3]]
    for deterministic in (False, True):
        operator = functools.partial(attention, deterministic=deterministic)
        assert torch.autograd.gradcheck(operator, leaves, fast_mode=True, nondet_tol=1e-12)
    assert torch.autograd.gradgradcheck(attention, leaves, fast_mode=True, nondet_tol=1e-12)


@pytest.mark.filterwarnings("default")
def test_in_a_hugging_face_model(monkeypatch):
    """Deformable DETR's attention with its sampling replaced, and its weights in our module."""
    detr = pytest.importorskip("transformers.models.deformable_detr.modeling_deformable_detr")
    config = types.SimpleNamespace(d_model=64, num_feature_levels=len(LEVELS), disable_custom_kernels=False)
    torch.manual_seed(0)
    module = detr.DeformableDetrMultiscaleDeformableAttention(config, num_heads=8, n_points=4).cuda()
    torch.nn.init.normal_(module.attention_weights.weight, std=0.1)
    shapes = torch.tensor(LEVELS, device="cuda")
    hidden, image = torch.randn(2, 30, 64, device="cuda"), torch.randn(2, PIXELS, 64, device="cuda")
    arguments = {
        "attention_mask": torch.rand(2, PIXELS, device="cuda") > 0.2,
        "reference_points": torch.rand(2, 30, len(LEVELS), 2, device="cuda"),
        "spatial_shapes": shapes,
        "spatial_shapes_list": [tuple(level) for level in LEVELS],
        "level_start_index": torch.cat((shapes.new_zeros(1), shapes.prod(1).cumsum(0)[:-1])),
    }
    wanted = module(hidden, encoder_hidden_states=image, **arguments)[0]

    ours = MultiscaleDeformableAttention(64, 64, len(LEVELS), 8, 4, "zeros", False).cuda()
    ours.load_state_dict(module.state_dict())
    mask = ~arguments["attention_mask"]
    found = ours(image, shapes, hidden, arguments["reference_points"], padding_mask=mask)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)

    called = []

    def forward(self, value, shapes, shapes_list, starts, locations, weights, im2col_step):
        called.append(True)
        return ms_deform_attn(value, shapes_list, starts, locations, weights, im2col_step)

    monkeypatch.setattr(detr.MultiScaleDeformableAttention, "forward", forward)
    found = module(hidden, encoder_hidden_states=image, **arguments)[0]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert called


@pytest.mark.slow
def test_memory_is_not_overstepped():
    """NVIDIA's memory checker, over types, odd sizes and points at NaN and infinity."""
    if shutil.which("compute-sanitizer") is None:
        pytest.skip("needs compute-sanitizer")
    program = Path(__file__).parent / "odd_calls.py"
    root = str(program.parent.parent.parent)
    done = subprocess.run(
        ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "9", sys.executable, str(program)],
        env={**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if "Device not supported" in done.stdout:
        pytest.skip("compute-sanitizer does not support this device")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "ERROR SUMMARY: 0 errors" in done.stdout
    assert "odd calls done" in done.stdout


def test_tuned_tiles(tmp_path, monkeypatch):
    """What is measured on this GPU is used, and computes the same."""
    from msda_triton import table, tiles, tuning

    *tensors, grad_out = inputs(torch.float32)
    wanted = gradients(attention, *tensors, grad_out)
    monkeypatch.setattr(table, "measured", {})
    img, points, weights = tensors
    try:
        chosen = tuning.tune(img, LEVELS, points, weights, path=tmp_path / "tiles.json")
        assert len(chosen) == 2
        assert table.read(tmp_path / "tiles.json") == chosen
        found = gradients(attention, *tensors, grad_out)
    finally:
        tiles.forward_tile.cache_clear()
        tiles.backward_tile.cache_clear()
    for tensor, truth in zip(found, wanted, strict=True):
        torch.testing.assert_close(tensor, truth, rtol=1e-4, atol=1e-3)
