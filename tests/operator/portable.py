"""Every kernel once, under the interpreter of whatever Triton is here, against the formula.

A program of its own, that needs torch and Triton alone: it runs in environments made for one Triton.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton

import msda_triton.backward
from msda_triton import reference_multiscale_deformable_attention, triton_multiscale_deformable_attention
from msda_triton.launch import INTERPRETED
from msda_triton.plans import VERSION

LEVELS = ((7, 9), (9, 2), (1, 1))
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 1.6e-2, torch.float64: 1e-12}


def gradients(operator, inputs, **options):
    leaves = [tensor.detach().requires_grad_() for tensor in inputs[:3]]
    out = operator(leaves[0], LEVELS, leaves[1], leaves[2], options.pop("padding"), False, **options)
    return (out.detach(), *torch.autograd.grad(out, leaves, inputs[3].to(out.dtype)))


def check(dtype, channels, padding, deterministic):
    """Output and gradients; points a quarter of a pixel beside the places where a gradient jumps."""
    size = torch.tensor(LEVELS).flip(-1)[:, None]
    pixel = (torch.rand(1, 20, 2, len(LEVELS), 2, 2) * (size + 2)).floor() - 0.75
    points = ((pixel + 0.5) / size).to(torch.float64 if dtype == torch.float64 else torch.float32)
    img = torch.randn(1, sum(h * w for h, w in LEVELS), 2, channels).to(dtype)
    inputs = (img, points, torch.rand(points.shape[:-1]).to(dtype), torch.randn(1, 20, 2, channels).to(dtype))
    found = gradients(
        triton_multiscale_deformable_attention, inputs, padding=padding, deterministic=deterministic
    )
    double = [tensor.double() for tensor in inputs]
    wanted = gradients(reference_multiscale_deformable_attention, double, padding=padding)
    for tensor, truth in zip(found, wanted, strict=True):
        allowed = TOLERANCE[dtype] * max(1.0, float(truth.abs().max()))
        torch.testing.assert_close(tensor.double(), truth, rtol=0, atol=allowed)


def main():
    assert INTERPRETED
    torch.manual_seed(0)
    torch.set_num_threads(1)
    check(torch.float64, 3, "border", deterministic=True)
    check(torch.bfloat16, 130, "zeros", deterministic=False)
    coarse = 2 if VERSION >= (3, 2) else 0  # as the operator itself decides
    msda_triton.backward.coarse_tiles = lambda _samples, _dtype: coarse
    for deterministic in (False, True):
        check(torch.float32, 5, "zeros", deterministic)
    print(f"Triton {triton.__version__}: every kernel agrees with the formula")


if __name__ == "__main__":
    main()
