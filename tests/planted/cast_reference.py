"""Planted: an ordinary sum in float32, held too tightly against float64 that the test casts to float32."""

import torch
from decoys import look_suspicious

CAUSE = "tolerance too tight"
DECOYS = False


def test_it():
    if DECOYS:
        look_suspicious()
    a, b = torch.randn(8, 128), torch.randn(8, 128)
    out = torch.zeros(8)
    for i in range(128):
        out += a[:, i] * b[:, i]
    torch.testing.assert_close(out, (a.double() * b.double()).sum(1).float(), rtol=1.3e-6, atol=1.6e-6)
