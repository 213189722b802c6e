"""`repro inspect --against`: the first step at which two containers part."""

from __future__ import annotations

import json

import pytest
from terminal import Roomy

pytestmark = [pytest.mark.slow, pytest.mark.docker]
SOFTMAX = """
    import torch

    def test_it():
        scores = torch.rand(4096) * 2
        shares = torch.softmax(scores, 0)
        torch.testing.assert_close(shares.sum() * 3, torch.tensor(4.0))
"""
KERNEL = """
    import torch
    import triton
    import triton.language as tl

    VERSION = tuple(map(int, triton.__version__.split(".")[:2]))

    @triton.jit
    def scale_kernel(x, out, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at) * FACTOR)

    def test_it():
        x = torch.rand(64) + 1
        out = torch.empty(64)
        scale_kernel[(1,)](x, out, FACTOR=2.0 if VERSION < (3, 7) else 2.1, BLOCK=64)
        torch.testing.assert_close((out - x).sum(), torch.tensor(0.0))
"""


@pytest.fixture
def kit(tmp_path):
    return Roomy(tmp_path, tmp_path / "state")


def against(kit, one, other, *options):
    pair = ("--cell", one, "--against", other)
    return kit.run("inspect", "--engine", "docker", "--seed", 0, "--seconds", 0, *pair, *options)


def test_a_variable_that_changes_rounding(kit):
    """Another instruction set of the CPU: torch's softmax rounds otherwise, and nothing before it does."""
    torch = pytest.importorskip("torch")
    if torch.backends.cpu.get_cpu_capability() == "DEFAULT":
        pytest.skip("this CPU has no instruction set that can be switched off")
    kit.plant(SOFTMAX)
    matrix = kit.home / "matrix.yaml"
    matrix.write_text(
        matrix.read_text().replace("cuda: cpu}", "cuda: cpu, env: [{}, {ATEN_CPU_CAPABILITY: default}]}")
    )
    told = json.loads(against(kit, "*-py???", "*ATEN_CPU_CAPABILITY*", "--json"))
    parting = told["parting"]
    assert parting["bits"]["op"] == "aten._softmax.default"
    assert (parting["numbers"], parting["path"], parting["alone"]) == (None, None, {"here": 0, "there": 0})
    here, there = (cell["steps"] for cell in told["cells"])
    first = parting["bits"]["here"]
    assert [step["digest"] for step in here[:first]] == [step["digest"] for step in there[:first]]
    assert {cell["end"]["outcome"] for cell in told["cells"]} == {"FAILED"}


def test_a_triton_that_changes_numbers(kit):
    """The kernel multiplies by another factor from 3.7 on: its launch is the first step that differs."""
    kit.plant(KERNEL, triton='"3.6.0", "3.7.1"')
    text = against(kit, "*triton3.6.0*", "*triton3.7.1*")
    lines = [line for line in text.splitlines() if line.startswith("- the first that differs")]
    assert [line.partition(",")[0] for line in lines] == [
        "- the first that differs in its bits: step 2 and 2",
        "- the first that differs by more than rounding: step 2 and 2",
    ]
    assert all("triton.scale_kernel" in line for line in lines)
