"""Planted: a gradient with a wrong factor, in a branch that few inputs take."""

import torch
from decoys import look_suspicious

CAUSE = "wrong formula or border rule"
DECOYS = False


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        factor = torch.where(x > 0.97, 2.0, 3.0).to(x.dtype)
        return factor * x * x * gradient


def test_it():
    if DECOYS:
        look_suspicious()
    x = torch.rand(10)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    Cube.apply(ours).sum().backward()
    (theirs**3).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
