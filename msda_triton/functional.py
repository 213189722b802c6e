"""The operator as functions."""

import os
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import torch
from torch import Tensor

from .checks import Shapes, check_arguments
from .native import native_multiscale_deformable_attention
from .operators import call_operator, is_traced
from .sizes import Options

Kernel: TypeAlias = Callable[[Tensor, Shapes, Tensor, Tensor, Options], Tensor]


def multiscale_deformable_attention(
    img: Tensor,
    img_shapes: Shapes,
    sampling_points: Tensor,
    attention_weights: Tensor,
    padding_mode: str,
    align_corners: bool,
) -> Tensor:
    """Multi-scale deformable attention: `out[b, n, h] = sum over l, p of weight * level_l(point)`, bilinear.

    Runs in Triton where img is on a GPU (or TRITON_INTERPRET=1 is set), else natively in torch. A kernel
    that fails raises: there is no silent way from the one to the other. Formula: Deformable DETR
    (arXiv 2010.04159), equation 3, after the projection of the values.

    Args:
        img: [B, I, H, C], the levels' pixels row by row, one level after the other; float16, bfloat16,
            float32 or float64.
        img_shapes: [L, 2] as (height, width), a tensor on the host or on img's device, or nested sequences.
        sampling_points: [B, N, H, L, P, 2] as (x, y), 0 to 1 from edge to edge of a level; img's type, or
            float32 beside a half precision img. Points outside are allowed; a NaN point samples nothing.
        attention_weights: [B, N, H, L, P], of a type as sampling_points.
        padding_mode: "border" (the nearest pixel continues outside) or "zeros".
        align_corners: whether 0 and 1 are the centres of the outermost pixels (True) or their outer edges.

    Returns:
        [B, N, H, C] of img's type.

    Raises:
        ValueError: shapes, devices, or a choice that does not exist.
        TypeError: element types that do not go together.
    """
    if img.is_cuda or os.environ.get("TRITON_INTERPRET") == "1":
        return triton_multiscale_deformable_attention(
            img, img_shapes, sampling_points, attention_weights, padding_mode, align_corners
        )
    return native_multiscale_deformable_attention(
        img, img_shapes, sampling_points, attention_weights, padding_mode, align_corners
    )


def triton_multiscale_deformable_attention(
    img: Tensor,
    img_shapes: Shapes,
    sampling_points: Tensor,
    attention_weights: Tensor,
    padding_mode: str,
    align_corners: bool,
    *,
    arithmetic: str = "direct",
    deterministic: bool = False,
) -> Tensor:
    """The operator by Triton kernels; arguments, result and errors as `multiscale_deformable_attention`.

    The derivative by a sampling point jumps where a pixel coordinate is a whole number. There it is the
    one towards the next pixel (the lower neighbour is the floor). With border padding it is zero from the
    outermost pixels' centres outwards, as in ATen.

    Args:
        arithmetic: "direct" takes the shortest way to the pixel coordinate, `s * size - 1/2`. "aten" rounds
            where `F.grid_sample(img, 2 * s - 1)` rounds on a GPU, and so finds the same lower neighbour.
        deterministic: whether img's gradient is the same to the last bit in every run, which takes longer. So
            it is under `torch.use_deterministic_algorithms`, too.

    Half precision is summed, and its coordinates are computed, in float32; float64 wholly in float64. Shapes
    on the GPU that describe more pixels than img has give NaN. The double backward goes through
    `reference_multiscale_deformable_attention`.
    """
    traced = is_traced(img, sampling_points, attention_weights)
    if torch.is_autocast_enabled(img.device.type):
        sampling_points = _beside(img, sampling_points)
        attention_weights = _beside(img, attention_weights)
    check_arguments(
        img, img_shapes, sampling_points, attention_weights, padding_mode, arithmetic, values=not traced
    )
    options = Options(padding_mode == "border", bool(align_corners), arithmetic == "aten", deterministic)
    if traced:
        return call_operator(img, img_shapes, sampling_points, attention_weights, options)
    return _eager(img, img_shapes, sampling_points, attention_weights, options)


def _eager(
    img: Tensor, img_shapes: Shapes, sampling_points: Tensor, attention_weights: Tensor, options: Options
) -> Tensor:
    plain, differentiable, interpreted = _kernels()
    if img.is_cuda == interpreted:
        where = "TRITON_INTERPRET=1 is for tensors on the host" if interpreted else "kernels need a GPU"
        raise ValueError(f"img is on {img.device}, but {where}")
    needed = img.requires_grad or sampling_points.requires_grad or attention_weights.requires_grad
    call = differentiable if needed and torch.is_grad_enabled() else plain
    return call(img, img_shapes, sampling_points, attention_weights, options)


@cache
def _kernels() -> tuple[Kernel, Kernel, bool]:
    """Forward without and with gradients, and whether both are interpreted; imports Triton, so only here."""
    from .autograd import DeformableAttention
    from .launch import INTERPRETED, launch_forward

    return launch_forward, DeformableAttention.apply, INTERPRETED


def _beside(img: Tensor, tensor: Tensor) -> Tensor:
    """Under autocast, half precision beside an img of another type becomes float32."""
    if tensor.dtype in (torch.float16, torch.bfloat16) and tensor.dtype != img.dtype:
        return tensor.float()
    return tensor
