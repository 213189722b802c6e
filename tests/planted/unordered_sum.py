"""Planted: a sum in whatever order its terms come, as by atomics, compared too tightly."""

import random

import torch
from decoys import look_suspicious

CAUSE = "nondeterministic summation"
DECOYS = False


def unordered_sum(x):
    order = list(range(x.shape[0]))
    random.SystemRandom().shuffle(order)
    total = torch.zeros(x.shape[1], dtype=x.dtype)
    for i in order:
        total += x[i]
    return total


def test_it():
    if DECOYS:
        look_suspicious()
    x = torch.rand(200, 4)
    torch.testing.assert_close(unordered_sum(x), x.sum(0), rtol=0.0, atol=2.5e-5)
