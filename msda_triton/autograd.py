"""The Triton kernels as differentiable functions."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .checks import Shapes
from .launch import Options, launch_backward, launch_forward
from .reference import reference_multiscale_deformable_attention


class DeformableAttention(torch.autograd.Function):
    """Forward by the forward kernel, backward by `DeformableAttentionGradient`."""

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
        grad_img, grad_points, grad_weights = DeformableAttentionGradient.apply(  # type: ignore[no-untyped-call]
            img, ctx.img_shapes, points, weights, grads[0], ctx.options, needs
        )
        return grad_img, None, grad_points, grad_weights, None


class DeformableAttentionGradient(torch.autograd.Function):
    """The backward kernel; its own backward differentiates the formula written in torch."""

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
    ) -> tuple[Tensor | None, ...]:
        if needs[0]:
            _alert_order_dependent_sums()
        ctx.save_for_backward(img, points, weights, grad_out)
        ctx.img_shapes = img_shapes
        ctx.options = options
        return launch_backward(img, img_shapes, points, weights, grad_out, options, needs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        inputs = [tensor.detach().requires_grad_() for tensor in ctx.saved_tensors]
        img, points, weights, grad_out = inputs
        border, align_corners, aten = ctx.options
        with torch.enable_grad():
            out = reference_multiscale_deformable_attention(
                img,
                ctx.img_shapes,
                points,
                weights,
                "border" if border else "zeros",
                align_corners,
                arithmetic="aten" if aten else "direct",
            )
            first = torch.autograd.grad(out, inputs[:3], grad_out, create_graph=True)
        pairs = [(gradient, seed) for gradient, seed in zip(first, grads, strict=True) if seed is not None]
        second = torch.autograd.grad(
            [gradient for gradient, _ in pairs], inputs, [seed for _, seed in pairs], allow_unused=True
        )
        return second[0], None, second[1], second[2], second[3], None, None


def _alert_order_dependent_sums() -> None:
    """Do as torch's own operators do under `torch.use_deterministic_algorithms`."""
    if not torch.are_deterministic_algorithms_enabled():
        return
    message = (
        "the gradient of img is summed by atomic additions, whose order, and with it the rounding, changes "
        "from run to run: under torch.use_deterministic_algorithms call "
        "reference_multiscale_deformable_attention"
    )
    if not torch.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(message)
    warnings.warn(message, stacklevel=2)
