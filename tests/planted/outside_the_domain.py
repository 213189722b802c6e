"""Planted: an angle from a cosine that rounding puts just above 1."""

import torch
from decoys import look_suspicious

CAUSE = "argument outside a function's domain"
DECOYS = False


def angle(a, b):
    return torch.acos((a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1)))


def test_it():
    if DECOYS:
        look_suspicious()
    a = torch.rand(3, 3) + 0.1
    b = a * (1.0 + torch.rand(3, 1))
    b[1:] += torch.rand(2, 3)
    cosine = (a.double() * b.double()).sum(1) / (a.double().norm(dim=1) * b.double().norm(dim=1))
    expected = torch.acos(cosine.clamp(-1.0, 1.0)).float()
    torch.testing.assert_close(angle(a, b), expected, rtol=1e-2, atol=1e-2)
