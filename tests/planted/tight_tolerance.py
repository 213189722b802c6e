"""Planted: an ordinary product of matrices, held against float64 more tightly than float32 can be."""

import torch
from decoys import look_suspicious

CAUSE = "tolerance too tight"
DECOYS = False


def test_it():
    if DECOYS:
        look_suspicious()
    a, b = torch.rand(8, 128), torch.rand(128, 8)
    blocks = sum(a[:, i : i + 16] @ b[i : i + 16] for i in range(0, 128, 16))
    torch.testing.assert_close(blocks, a @ b, rtol=0.0, atol=1.6e-5)
