"""Planted: a norm's gradient by way of a variance that cancels, against torch's own."""

import torch
from decoys import look_suspicious

CAUSE = "numerical instability"
DECOYS = False


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mean = x.mean(1, keepdim=True)
        scale = torch.rsqrt((x * x).mean(1, keepdim=True) - mean * mean + 1e-5)
        out = (x - mean) * scale
        ctx.save_for_backward(out, scale)
        return out

    @staticmethod
    def backward(ctx, grad):
        out, scale = ctx.saved_tensors
        return scale * (grad - grad.mean(1, keepdim=True) - out * (grad * out).mean(1, keepdim=True))


def test_it():
    if DECOYS:
        look_suspicious()
    x, weight = (torch.randn(4, 64) + 30).requires_grad_(), torch.randn(4, 64)
    (ours,) = torch.autograd.grad((Norm.apply(x) * weight).sum(), x)
    (theirs,) = torch.autograd.grad((torch.nn.functional.layer_norm(x, (64,)) * weight).sum(), x)
    torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=2e-5)
