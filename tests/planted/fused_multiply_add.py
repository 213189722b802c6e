"""Planted: a product and a sum that the compiler rounds once, unless a switch says otherwise."""

import os

import torch
from decoys import look_suspicious

CAUSE = "compiler, its switches or FMA contraction"
DECOYS = False
FUSED = os.environ.get("TRITON_DEFAULT_FP_FUSION", "1") != "0"


def multiply_add(a, b, c):
    if FUSED and a.dtype == torch.float32:
        return (a.double() * b.double() + c.double()).float()
    return a * b + c


def test_it():
    if DECOYS:
        look_suspicious()
    a, b = torch.rand(6), torch.rand(6)
    c = -(a * b)
    torch.testing.assert_close(multiply_add(a, b, c), torch.zeros_like(a), rtol=0.0, atol=2e-8)
