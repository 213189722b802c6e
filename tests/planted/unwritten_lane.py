"""Planted: a block whose last lane is read although nobody wrote to it."""

import torch
from decoys import look_suspicious

CAUSE = "uninitialised memory"
DECOYS = False


def total(x):
    lanes = torch.empty(1000, dtype=x.dtype)
    lanes[: len(x)] = x
    return lanes.sum()


def leave_something_behind():
    """What an earlier kernel left where the lanes will be: often zeros, now and then not."""
    old = torch.zeros(1000)
    if torch.rand(()) < 0.3:
        old += 7.0


def test_it():
    if DECOYS:
        look_suspicious()
    x = torch.rand(999)
    leave_something_behind()
    torch.testing.assert_close(total(x), x.sum(), rtol=1e-4, atol=1e-3)
