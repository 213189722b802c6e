"""The kernels as registered torch operators, for all that traces: compile, export, fake tensors, vmap.

Eager calls do not come here: a registered operator costs more than the kernels do at a decoder's size.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .checks import Shapes, check_arguments
from .sizes import Options

SHARED = "Tensor img, Tensor? img_shapes, int[] sizes, Tensor points, Tensor weights"
FLAGS = "bool border, bool align_corners, bool aten, bool deterministic"
PLAIN = (Tensor, torch.nn.Parameter)


def is_traced(*tensors: Tensor) -> bool:
    """Whether something looks on that must see one operator instead of what it does."""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack() > 0
        or any(type(tensor) not in PLAIN for tensor in tensors)
    )


def call_operator(
    img: Tensor, img_shapes: Shapes, points: Tensor, weights: Tensor, options: Options
) -> Tensor:
    """The registered operator; numbers among the arguments stay numbers."""
    _refuse_functional_gradients()
    tensor = img_shapes if isinstance(img_shapes, Tensor) else None
    sizes = [] if tensor is not None else [int(number) for row in img_shapes for number in row]
    out: Tensor = attention(img, tensor, sizes, points, weights, *options)
    return out


def _refuse_functional_gradients() -> None:
    """torch's custom operators take part in vmap, but not in torch.func's own derivatives."""
    if torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active():
        return
    stack = torch._C._functorch.get_interpreter_stack() or []
    if any(level.key() != torch._C._functorch.TransformType.Vmap for level in stack):
        raise RuntimeError(
            "torch.func.grad, vjp, jvp and jacrev do not reach through a custom operator of torch: take "
            "torch.autograd.grad, or call reference_multiscale_deformable_attention"
        )


def _shapes(img_shapes: Tensor | None, sizes: list[int]) -> Shapes:
    if img_shapes is not None:
        return img_shapes
    return [(sizes[index], sizes[index + 1]) for index in range(0, len(sizes), 2)]


@torch.library.custom_op("msda_triton::attention", mutates_args=(), schema=f"({SHARED}, {FLAGS}) -> Tensor")
def attention(
    img: Tensor, img_shapes: Tensor | None, sizes: list[int], points: Tensor, weights: Tensor, *flags: bool
) -> Tensor:
    """Forward, with real tensors."""
    from .launch import launch_forward

    options = Options(*flags)
    shapes = _shapes(img_shapes, sizes)
    check_arguments(img, shapes, points, weights, "border" if options.border else "zeros")
    return launch_forward(img, shapes, points, weights, options)


@torch.library.custom_op(
    "msda_triton::attention_backward",
    mutates_args=(),
    schema=f"({SHARED}, Tensor grad_out, bool[] needs, {FLAGS}) -> (Tensor, Tensor, Tensor)",
)
def attention_backward(
    img: Tensor,
    img_shapes: Tensor | None,
    sizes: list[int],
    points: Tensor,
    weights: Tensor,
    grad_out: Tensor,
    needs: list[bool],
    *flags: bool,
) -> tuple[Tensor, ...]:
    """Gradients of img, points and weights, with real tensors; those that nobody needs have no elements."""
    from .autograd import gradients

    of_img, of_points, of_weights = needs
    wanted = (of_img, of_points, of_weights)
    found = gradients(img, _shapes(img_shapes, sizes), points, weights, grad_out, Options(*flags), wanted)
    return tuple(
        tensor if needed and tensor is not None else img.new_empty(0)
        for tensor, needed in zip(found, needs, strict=True)
    )


@attention.register_fake
def _(img: Tensor, img_shapes: Any, sizes: Any, points: Tensor, weights: Any, *flags: bool) -> Tensor:
    return img.new_empty(*points.shape[:3], img.shape[3])


@attention_backward.register_fake
def _(
    img: Tensor, shapes: Any, sizes: Any, points: Tensor, weights: Tensor, grad: Any, needs: Any, *flags: bool
) -> tuple[Tensor, ...]:
    pairs = zip((img, points, weights), needs, strict=True)
    return tuple(
        torch.empty_like(tensor, memory_format=torch.contiguous_format) if needed else img.new_empty(0)
        for tensor, needed in pairs
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    img, ctx.img_shapes, ctx.sizes, points, weights, *ctx.flags = inputs
    ctx.save_for_backward(img, points, weights)


def _differentiate(ctx: Any, grad_out: Tensor) -> tuple[Any, ...]:
    img, points, weights = ctx.saved_tensors
    needs = [ctx.needs_input_grad[index] for index in (0, 3, 4)]
    found = attention_backward(
        img, ctx.img_shapes, ctx.sizes, points, weights, grad_out.contiguous(), needs, *ctx.flags
    )
    grads = [tensor if needed else None for tensor, needed in zip(found, needs, strict=True)]
    return grads[0], None, None, grads[1], grads[2], *(None for _ in ctx.flags)


def _keep_for_second(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    img, ctx.img_shapes, ctx.sizes, points, weights, grad_out, ctx.needs, *ctx.flags = inputs
    ctx.save_for_backward(img, points, weights, grad_out)


def _differentiate_again(ctx: Any, *seeds: Tensor | None) -> tuple[Any, ...]:
    from .autograd import second_gradients

    wanted = tuple(seed if needed else None for seed, needed in zip(seeds, ctx.needs, strict=True))
    shapes = _shapes(ctx.img_shapes, ctx.sizes)
    second = second_gradients(ctx.saved_tensors, shapes, Options(*ctx.flags), wanted)
    return second[0], None, None, *second[1:], None, *(None for _ in ctx.flags)


torch.library.register_autograd(attention, _differentiate, setup_context=_keep)
torch.library.register_autograd(attention_backward, _differentiate_again, setup_context=_keep_for_second)


def _batched(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
    """vmap's dimension becomes part of the batch."""
    if in_dims[1] is not None:
        raise ValueError("vmap over img_shapes is not supported: levels must be the same for all")
    size: int = info.batch_size
    folded = list(arguments)
    for index in (0, 3, 4):
        folded[index] = _fold(arguments[index], in_dims[index], size)
    out: Tensor = attention(*folded)
    return out.view(size, -1, *out.shape[1:]), 0


def _fold(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    moved = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    return moved.flatten(0, 1)


if hasattr(torch.library, "register_vmap"):  # torch 2.5
    torch.library.register_vmap(attention, _batched)
