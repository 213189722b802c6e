"""`repro kernels` on code that Triton really generated, compiled without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Kit

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent


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
    assert "identical: 1 of 1 kernels" in between(kit, caches, "one", "again")


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


def test_an_interpreted_cell_is_told_apart(kit):
    kit.plant("def test_it():\n    pass\n")
    said = kit.complaint("kernels", "--engine", "host", status=3)
    assert "nothing is compiled" in said
    assert "--cache DIR" in said


def test_a_folder_without_kernels(kit, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "no kernel of Triton" in kit.complaint("kernels", "--cache", tmp_path / "empty", status=6)
