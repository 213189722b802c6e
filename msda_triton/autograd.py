"""The Triton kernels as differentiable functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .backward import Gradients
from .checks import Shapes
from .launch import launch_backward, launch_forward
from .reference import reference_multiscale_deformable_attention
from .sizes import Options


class DeformableAttention(torch.autograd.Function):
    """Forward by the forward kernel, backward by the backward kernels, twice by the formula in torch."""

    @staticmethod
    def forward(
        ctx: Any, img: Tensor, img_shapes: Shapes, points: Tensor, weights: Tensor, options: Options
    ) -> Tensor:
        ctx.save_for_backward(img, points, weights)
        ctx.img_shapes = img_shapes
        ctx.options = options
        return launch_forward(img, img_shapes, points, weights, options)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        img, points, weights = ctx.saved_tensors
        needs = (ctx.needs_input_grad[0], ctx.needs_input_grad[2], ctx.needs_input_grad[3])
        call = DeformableAttentionGradient.apply if torch.is_grad_enabled() else gradients
        grad_img, grad_points, grad_weights = call(
            img, ctx.img_shapes, points, weights, grads[0], ctx.options, needs
        )
        return grad_img, None, grad_points, grad_weights, None


class DeformableAttentionGradient(torch.autograd.Function):
    """The backward kernels; their own backward differentiates the formula written in torch."""

    @staticmethod
    def forward(
        ctx: Any,
        img: Tensor,
        img_shapes: Shapes,
        points: Tensor,
        weights: Tensor,
        grad_out: Tensor,
        options: Options,
        needs: tuple[bool, bool, bool],
    ) -> Gradients:
        ctx.save_for_backward(img, points, weights, grad_out)
        ctx.img_shapes = img_shapes
        ctx.options = options
        return gradients(img, img_shapes, points, weights, grad_out, options, needs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        second = second_gradients(ctx.saved_tensors, ctx.img_shapes, ctx.options, grads)
        return second[0], None, second[1], second[2], second[3], None, None


def gradients(
    img: Tensor,
    img_shapes: Shapes,
    points: Tensor,
    weights: Tensor,
    grad_out: Tensor,
    options: Options,
    needs: tuple[bool, bool, bool],
) -> Gradients:
    """Gradients by the kernels; as in torch's own, `use_deterministic_algorithms` counts when they run."""
    if torch.are_deterministic_algorithms_enabled():
        options = options._replace(deterministic=True)
    return launch_backward(img, img_shapes, points, weights, grad_out, options, needs)


def second_gradients(
    saved: tuple[Tensor, ...], img_shapes: Shapes, options: Options, seeds: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...]:
    """Gradients of the gradients.

    Args:
        saved: img, points, weights and the gradient of the output.
        img_shapes: as in `multiscale_deformable_attention`.
        options: as given to the forward pass.
        seeds: gradients of the gradients of img, points and weights.

    Returns:
        Gradients of the four saved tensors, None where one has no part in it.
    """
    inputs = [tensor.detach().requires_grad_() for tensor in saved]
    img, points, weights, grad_out = inputs
    padding_mode = "border" if options.border else "zeros"
    arithmetic = "aten" if options.aten else "direct"
    with torch.enable_grad():
        out = reference_multiscale_deformable_attention(
            img, img_shapes, points, weights, padding_mode, options.align_corners, arithmetic=arithmetic
        )
        first = torch.autograd.grad(out, inputs[:3], grad_out, create_graph=True)
    pairs = [(gradient, seed) for gradient, seed in zip(first, seeds, strict=True) if seed is not None]
    return torch.autograd.grad(
        [gradient for gradient, _ in pairs], inputs, [seed for _, seed in pairs], allow_unused=True
    )
