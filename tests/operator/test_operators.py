"""What traces sees one operator: compile, export, fake tensors, vmap, opcheck; the drop-in."""

import pytest
import torch
from test_kernels import LEVELS, draw

import msda_triton
from msda_triton import MultiscaleDeformableAttention, triton_multiscale_deformable_attention

SHAPES = torch.tensor(LEVELS)


def attention(img, points, weights, img_shapes=LEVELS):
    return triton_multiscale_deformable_attention(img, img_shapes, points, weights, "zeros", False)


@pytest.fixture
def inputs():
    return [tensor.requires_grad_() for tensor in draw(2, 2, 3, 5, 2, LEVELS, torch.float64, 0)]


def derivatives(function, inputs):
    return torch.autograd.grad(function(*inputs).sin().sum(), inputs)


@pytest.mark.slow
@pytest.mark.parametrize("img_shapes", [LEVELS, SHAPES], ids=["numbers", "tensor"])
def test_compile_fullgraph(inputs, img_shapes):
    compiled = torch.compile(
        lambda *tensors: attention(*tensors, img_shapes), fullgraph=True, backend="aot_eager"
    )
    for found, wanted in zip(derivatives(compiled, inputs), derivatives(attention, inputs), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)


@pytest.mark.slow
def test_compiled_module():
    module = MultiscaleDeformableAttention(16, 8, 2, 2, 2, "zeros", False)
    arguments = (torch.randn(2, 23, 16), LEVELS, torch.randn(2, 5, 16), torch.rand(2, 5, 2))
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*arguments), module(*arguments))


class Layer(torch.nn.Module):
    def forward(self, img, points, weights):
        return attention(img, points, weights)


@pytest.mark.slow
def test_export(inputs):
    program = torch.export.export(Layer(), tuple(tensor.detach() for tensor in inputs))
    called = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert called == ["msda_triton.attention.default"]
    torch.testing.assert_close(program.module()(*inputs), attention(*inputs))


def test_fake_tensors(inputs):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        out = attention(*map(mode.from_tensor, inputs))
        assert out.shape == (2, 5, 2, 3)
        assert [tensor.shape for tensor in derivatives(attention, [mode.from_tensor(t) for t in inputs])]


def test_vmap(inputs):
    img, points, weights = inputs
    batched = torch.vmap(attention, in_dims=(None, 1, 0))
    out = batched(img, torch.stack([points, points.flip(1)], 1), torch.stack([weights, 2 * weights]))
    torch.testing.assert_close(out[0], attention(*inputs))
    torch.testing.assert_close(out[1], attention(img, points.flip(1), 2 * weights))
    found = torch.autograd.grad(out.sum(), inputs)
    both = attention(*inputs) + attention(img, points.flip(1), 2 * weights)
    for tensor, truth in zip(found, torch.autograd.grad(both.sum(), inputs), strict=True):
        torch.testing.assert_close(tensor, truth)
    with pytest.raises(ValueError, match="vmap over img_shapes is not supported"):
        torch.vmap(lambda s: attention(*inputs, s))(torch.stack([SHAPES, SHAPES]))


def test_functional_gradients_are_refused(inputs):
    img, points, weights = inputs
    with pytest.raises(RuntimeError, match=r"torch\.func\.grad, vjp, jvp and jacrev do not reach"):
        torch.func.grad(lambda img: attention(img, points, weights).sum())(img)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(False, False, False, False), (True, True, True, True)])
def test_opcheck(inputs, flags):
    """torch's own examination: schema, autograd, fake tensors, dynamic shapes."""
    img, points, weights = inputs
    torch.library.opcheck(torch.ops.msda_triton.attention.default, (img, SHAPES, [], points, weights, *flags))


def test_double_backward_of_the_operator(inputs):
    def operator(*tensors):
        img, points, weights = tensors
        return torch.ops.msda_triton.attention(img, SHAPES, [], points, weights, *(False,) * 4)

    assert torch.autograd.gradgradcheck(operator, tuple(inputs), fast_mode=True)


def test_autocast_takes_mixed_types():
    img, points, weights = draw(1, 1, 3, 4, 2, LEVELS, torch.float32, 0)
    wanted = attention(img, points.float(), weights.bfloat16().float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(attention(img, points.float(), weights.bfloat16()), wanted)
    with pytest.raises(TypeError, match="attention_weights must be"):
        attention(img, points.float(), weights.bfloat16())


def test_drop_in(inputs):
    """Deformable DETR's arguments, mmcv's step; heads and channels come back as one dimension."""
    img, points, weights = inputs
    starts = torch.tensor([0, 15])
    out = msda_triton.ms_deform_attn(img, SHAPES, starts, points, weights, im2col_step=64)
    torch.testing.assert_close(out, attention(*inputs).flatten(-2), rtol=0, atol=0)
