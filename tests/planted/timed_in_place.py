"""Planted: a kernel that adds to its output, under an autotuner that runs it to time it."""

import random

import torch
import triton
import triton.language as tl
from decoys import look_suspicious

CAUSE = "autotuning"
DECOYS = False


def time(call, quantiles=None):
    call()
    seconds = random.SystemRandom().random()
    return [seconds] * 3


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"], do_bench=time)
@triton.jit
def add_to(out, x, n, BLOCK: tl.constexpr):  # noqa: N803
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    tl.store(out + places, tl.load(out + places, inside) + tl.load(x + places, inside), inside)


def test_it():
    if DECOYS:
        look_suspicious()
    n = random.choice([96, 100, 128])
    x, out = torch.rand(n), torch.ones(n)
    add_to[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](out, x, n)
    torch.testing.assert_close(out, 1.0 + x)
