"""Planted: a gradient through sixty products, which overflows for some of the factors."""

import torch
from decoys import look_suspicious

CAUSE = "exploding or vanishing gradients"
DECOYS = False


def chain(x, factor):
    for _ in range(60):
        x = x * factor
    return x


def test_it():
    if DECOYS:
        look_suspicious()
    x, factor = torch.rand(3), 2.0 + 2.6 * torch.rand(3)
    ours, theirs = x.clone().requires_grad_(), x.double().requires_grad_()
    chain(ours, factor).sum().backward()
    chain(theirs, factor.double()).sum().backward()
    torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=1e-4, atol=0.0)
