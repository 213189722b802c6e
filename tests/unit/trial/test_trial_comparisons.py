"""Comparisons are seen however a test imports them, and failing inputs come back bit for bit."""

import hashlib

import pytest
import torch

FORMS = """
import unittest
import numpy as np
import numpy.testing as npt
import torch
import torch.testing
from numpy.testing import assert_allclose as renamed
from torch.testing import assert_close
from torch import allclose
import torch.testing as tt

def bound(x, close=assert_close): close(x, x)

class Case(unittest.TestCase):
    def test_it(self):
        x, a = torch.ones(3), np.ones(3)
        assert_close(x, x)
        torch.testing.assert_close(x, x)
        tt.assert_close([x], [x])
        bound(x)
        assert allclose(x, x)
        assert x.allclose(x)
        assert np.allclose(a, a)
        renamed(a, a)
        npt.assert_array_almost_equal(a, a)
        npt.assert_almost_equal(a, a)
        npt.assert_array_equal(a, a)
        npt.assert_equal(a, a)
        self.assertAlmostEqual(1.0, 1.0)

def test_fails():
    x = torch.zeros(2, 3)
    y = x.clone()
    assert_close(x, y)
    y[1, 2] = 1
    assert_close(x, y, atol=0.1, rtol=0.0)

def test_predicate():
    assert torch.allclose(torch.ones(2), torch.zeros(2))

def test_caught():
    try:
        assert_close(torch.ones(2), torch.zeros(2))
    except AssertionError:
        pass
    assert False
"""


@pytest.mark.slow
def test_every_form_of_import_is_measured(run_block):
    done = run_block({"test_subject.py": FORMS}, "Case::test_it", seeds=[1])
    found = done.of("end")[0]["comparisons"]
    assert done.outcomes == ["PASSED"]
    assert [one["index"] for one in found] == list(range(13))
    assert [one["function"] for one in found] == [
        *["torch.testing.assert_close"] * 4,
        *["torch.allclose"] * 2,
        "numpy.allclose",
        *[f"numpy.testing.assert_{name}" for name in ("allclose", "array_almost_equal", "almost_equal")],
        *[f"numpy.testing.assert_{name}" for name in ("array_equal", "equal")],
        "assertAlmostEqual",
    ]
    assert all(one["mismatched"] == 0 and one["passed"] for one in found)
    assert {one["where"].rsplit(":", 1)[0] for one in found} == {
        "test_subject.py:test_it",
        "test_subject.py:bound",
    }


@pytest.mark.slow
def test_the_failing_comparison_is_named(run_block):
    end = run_block({"test_subject.py": FORMS}, "test_fails", seeds=[1]).of("end")[0]
    assert end["signature"]["key"] == "AssertionError in test_fails: comparison 1"
    failed = end["comparisons"][1]
    assert (failed["passed"], failed["mismatched"], failed["atol"]) == (False, 1, 0.1)
    assert failed["worst"] == [{"index": [1, 2], "actual": 0.0, "expected": 1.0}]
    end = run_block({"test_subject.py": FORMS}, "test_predicate", seeds=[1]).of("end")[0]
    assert end["signature"]["comparison"] == 0


@pytest.mark.slow
def test_a_caught_comparison_is_not_to_blame(run_block):
    end = run_block({"test_subject.py": FORMS}, "test_caught", seeds=[1]).of("end")[0]
    assert end["comparisons"][0]["passed"] is False
    assert end["signature"]["comparison"] is None


DRAWING = """
import random
import numpy as np
import torch

def test_it(record_property):
    x = torch.rand(4, 5)
    noise = torch.empty(3).normal_()
    kept = torch.nn.functional.dropout(x, 0.5)
    choice = torch.randint(0, 9, (2,), generator=torch.Generator().manual_seed(random.randrange(99)))
    drawn = [x.sum(), noise.sum(), kept.sum(), choice.sum(), torch.tensor(np.random.rand())]
    record_property("drawn", repr([one.item() for one in drawn]))
    torch.testing.assert_close(x, torch.where(x > 0.95, x + 1, x))
"""


@pytest.mark.slow
def test_failing_inputs_are_kept_and_replayed(run_block):
    done = run_block({"test_subject.py": DRAWING}, seeds=[*range(12), *range(12)], keep_inputs=2)
    failing = [end for end in done.of("end") if end["outcome"] == "FAILED"]
    kept = done.of("inputs")
    assert len(kept) == len({one["seed"] for one in kept}) == 2
    assert len(done.of("rerun")) == 2
    assert len(done.outcomes) == 24
    assert all(one["failed_again"] and one["same_elements"] for one in kept)
    assert [draw["op"] for draw in kept[0]["draws"]] == ["rand", "normal_", "bernoulli_", "randint"]
    path = done.folder / kept[0]["path"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == kept[0]["sha256"]
    assert torch.load(path, weights_only=True)["tensors"][0].shape == (4, 5)

    again = run_block(
        {"test_subject.py": DRAWING}, seeds=[100, 101], **replaying(path, 100, 101), keep_inputs=2
    )
    ends = again.of("end")
    assert {end["outcome"] for end in ends} == {"FAILED"}
    assert {end["properties"]["drawn"] for end in ends} == {failing[0]["properties"]["drawn"]}
    assert not again.of("inputs")
    other = DRAWING.replace("torch.rand(4, 5)", "torch.rand(4, 6)")
    differing = run_block({"test_subject.py": other}, seeds=[1], **replaying(path, 1))
    assert differing.outcomes == ["OTHER_INPUTS"]
    early = "def test_it():\n    x = torch.rand(4, 5)\n    assert 0\n"
    failing_early = run_block({"test_subject.py": "import torch\n" + early}, seeds=[1], **replaying(path, 1))
    assert failing_early.outcomes == ["FAILED"]
    passing_early = run_block(
        {"test_subject.py": "import torch\n" + early.replace("0", "1")}, seeds=[1], **replaying(path, 1)
    )
    assert passing_early.outcomes == ["OTHER_INPUTS"]


def replaying(path, *seeds):
    return {"mode": "replay", "inputs": str(path.parent), "replay": {str(seed): path.name for seed in seeds}}


def test_a_seed_without_a_file_is_replayed_by_the_seed(run_block):
    code = "import random\ndef test_it(record_property): record_property('x', random.random())\n"
    drawn = [
        end["properties"]["x"]
        for mode in ("seeds", "replay")
        for end in run_block({"test_subject.py": code}, seeds=[3, 4], mode=mode).of("end")
    ]
    assert drawn[:2] == drawn[2:]


def test_inputs_of_a_test_without_torch_are_its_seed(run_block):
    done = run_block({"test_subject.py": "def test_it(): assert 0\n"}, seeds=[1, 1, 2], keep_inputs=5)
    assert [(one["seed"], one["path"]) for one in done.of("inputs")] == [(1, None), (2, None)]
    assert "seed" in done.of("inputs")[0]["reason"]
