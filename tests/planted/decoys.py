"""What looks suspicious in a test and does no harm: the wrong answers that a diagnosis might give."""

import random

import torch


def look_suspicious():
    """Numbers that overflow, vanish, are not finite, cancel, jump or come in another order; all in order."""
    large = torch.rand(16) * 1e25
    assert torch.isfinite(large * 1e-20).all()
    masked = torch.where(torch.rand(16) > 0.5, torch.tensor(float("nan")), torch.tensor(1.0))
    assert torch.nan_to_num(masked, nan=1.0).eq(1.0).all()
    scratch = torch.empty(64)
    scratch.copy_(torch.rand(64))
    terms = torch.rand(512)
    order = list(range(512))
    random.SystemRandom().shuffle(order)  # atomics add in an order of their own, and the tolerance knows it
    torch.testing.assert_close(sum(terms[order].tolist()), float(terms.double().sum()), rtol=1e-4, atol=1e-4)
    leaf = torch.zeros(8, requires_grad=True)  # where the derivative of relu jumps
    torch.relu(leaf).sum().backward()
    torch.testing.assert_close(leaf.grad, torch.zeros(8))
    close = torch.rand(32)
    assert ((close + 1e-6) - close).abs().max() < 1e-5
