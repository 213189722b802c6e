"""Planted: a variance as the difference of two large numbers."""

import torch
from decoys import look_suspicious

CAUSE = "numerical instability"
DECOYS = False


def variance(x):
    return (x * x).mean(1) - x.mean(1) ** 2


def test_it():
    if DECOYS:
        look_suspicious()
    x = torch.randn(2, 64) + 10.0 ** (3.5 * torch.rand(2, 1))
    expected = x.double().var(1, unbiased=False).float()
    torch.testing.assert_close(variance(x), expected, rtol=5e-2, atol=5e-2)
