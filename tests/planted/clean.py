"""Nothing is planted: the test never fails."""

import torch
from decoys import look_suspicious

CAUSE = ""
DECOYS = False


def test_it():
    if DECOYS:
        look_suspicious()
    x = torch.rand(8, requires_grad=True)
    (x * x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())
