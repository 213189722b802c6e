"""`repro kernels` on code that Triton really generated, compiled without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Kit
from terminal import Roomy

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
FUSED = """
import torch
import triton
import triton.language as tl

@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)

@triton.jit
def fused_kernel(x, out, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + at, larger(a * FACTOR + a, 0.0), mask=at < n)

def test_it():
    x = torch.rand(100)
    out = torch.empty(100)
    fused_kernel[(2,)](x, out, 100, FACTOR=2.5, BLOCK=64, num_warps=2)
    torch.testing.assert_close(out, x * 3.5)
"""


@pytest.fixture(scope="module")
def caches(tmp_path_factory):
    folder = tmp_path_factory.mktemp("caches")
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    done = subprocess.run(
        [sys.executable, HERE / "compile_offline.py", folder],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def kit(tmp_path):
    return Kit(tmp_path, tmp_path / "state")


def between(kit, caches, ours, theirs, *more):
    return kit.run("kernels", "--cache", caches / ours, "--against-cache", caches / theirs, *more)


def test_the_same_program_is_identical(kit, caches):
    told = json.loads(between(kit, caches, "one", "again", "--json"))
    assert told["identical"] is True
    assert [one["first_difference"] for one in told["compared"]] == [None]
    (kernel,) = told["cells"][0]["kernels"]
    assert kernel["name"] == "scale_kernel"
    assert kernel["counts"]["ptx"]["atomic"] == {"atom.global.gpu.relaxed.add.f32": 2}
    assert "identical: 1 of 1 kernel" in between(kit, caches, "one", "again")


def test_contraction_shows_in_ptx_and_not_before(kit, caches):
    told = json.loads(between(kit, caches, "one", "apart", "--json"))
    (one,) = told["compared"]
    assert (one["identical"], one["first_difference"]) == (False, "ptx")
    assert one["facts"] == {"enable_fp_fusion": [True, False]}
    counts = {(row["stage"], row["instruction"]): (row["a"], row["b"]) for row in one["counts"]}
    assert counts["ptx", "fma.rn.f32"] == (2, 0)
    text = between(kit, caches, "one", "apart", "--show", "ptx")
    assert "differs from ptx on" in text
    assert "-fma.rn.f32" in text


def test_another_block_differs_from_the_source_on(kit, caches):
    told = json.loads(between(kit, caches, "one", "larger", "--json"))
    assert told["compared"][0]["first_difference"] == "ttir"


def test_one_cache_alone(kit, caches):
    text = kit.run("kernels", "--cache", caches / "one")
    assert "scale_kernel" in text
    assert "ttir, ttgir, llir, ptx" in text


def test_a_trial_is_compiled_for_a_gpu_that_is_not_here(tmp_path):
    kit = Roomy(tmp_path, tmp_path / "state")
    kit.plant(FUSED)
    options = ("--engine", "host", "--arch", "sm_90", "--env", "TRITON_DEFAULT_FP_FUSION=0")
    told = json.loads(kit.run("kernels", *options, "--json"))
    assert [side["outcome"] for side in told["cells"]] == ["PASSED", "PASSED"]
    assert [side["refused"] for side in told["cells"]] == [{}, {}]
    (kernel,) = told["cells"][0]["kernels"]
    assert (kernel["resources"]["num_warps"], kernel["resources"]["arch"]) == (2, 90)
    (one,) = told["compared"]
    assert (one["name"], one["first_difference"], one["equal_again"]) == ("fused_kernel", "ptx", [])
    counts = {(row["stage"], row["instruction"]): (row["a"], row["b"]) for row in one["counts"]}
    assert counts["ptx", "fma.rn.f32"] == (1, 0)


@pytest.mark.docker
def test_two_tritons_in_containers(tmp_path):
    """Each cell compiles with its own Triton, by its own ptxas."""
    kit = Roomy(tmp_path, tmp_path / "state")
    kit.plant(FUSED, triton='"3.6.0", "3.7.1"')
    cells = ("--cell", "*triton3.6.0*", "--against", "*triton3.7.1*")
    told = json.loads(kit.run("kernels", "--engine", "docker", "--arch", "sm_90", *cells, "--json"))
    assert [side["kernels"][0]["resources"]["triton_version"] for side in told["cells"]] == ["3.6.0", "3.7.1"]
    (one,) = told["compared"]
    assert one["facts"]["triton_version"] == ["3.6.0", "3.7.1"]
    stages = {row["stage"]: row["equal"] for row in one["stages"]}
    assert list(stages) == ["ttir", "ttgir", "llir", "ptx", "sass"]
    assert one["first_difference"] == next((stage for stage, equal in stages.items() if not equal), None)


def test_an_interpreted_cell_is_told_apart(kit):
    kit.plant("def test_it():\n    pass\n")
    said = kit.complaint("kernels", "--engine", "host", status=3)
    assert "nothing is compiled" in said
    assert "--arch sm_90" in said
    assert "--cache DIR" in said


def test_a_folder_without_kernels(kit, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "no kernel of Triton" in kit.complaint("kernels", "--cache", tmp_path / "empty", status=6)
