"""A failing case in its cell: described, altered, fitted to other sizes, and made small."""

import json

import pytest

SIZES = """\
import random
import pytest
from helper import draw

B = 3
HEADS, POINTS = 4, 100
LEVELS = ((64, 32), (8, 8))
UNUSED = 77

def other():
    return [55]

@pytest.mark.parametrize("mode", ["zeros", "border"])
@pytest.mark.parametrize("count, wide", [(8, True), (2, False)])
def test_it(count, wide, mode, scale=16, *, sizes=((3, 4), (5, 6)), name="plain"):
    points = draw(HEADS, POINTS)
    for _ in range(20):
        steps = B * len(LEVELS)
    raise AssertionError(f"{(count, wide, mode, scale, sizes, len(points), LEVELS)} {random.random()}")
"""
HELPER = "WIDTH = 2\ndef draw(heads, points, *, more=30):\n    return [0] * heads * points * WIDTH\n"
FILES = {"tests/test_subject.py": SIZES, "tests/helper.py": HELPER}
PLACE = {"test_file": "tests/test_subject.py", "test": "test_it[8-True-border]"}

TENSORS = """\
import torch
HEADS, POINTS = 4, 100
def test_it():
    points = torch.rand(HEADS, POINTS, 2)
    noise = torch.randn(10, len(points))
    torch.testing.assert_close(points.clamp(max=0.99), points)
"""
KEY = "AssertionError in test_it: comparison 0"

QUOTIENT = """\
import torch
def test_it():
    x = torch.rand(3)
    torch.testing.assert_close(1.01 * x / x, x / x)
"""


def test_what_a_case_is_made_of(run_block):
    (case,) = run_block(FILES, expand="case", **PLACE).of("case")
    arguments = {one["name"]: (one["kind"], one["value"]) for one in case["arguments"]}
    assert arguments == {
        "count": ("int", 8), "wide": ("bool", True), "mode": ("choice", 1), "scale": ("int", 16),
        "sizes": ("sizes", [[3, 4], [5, 6]]),
    }  # fmt: skip
    constants = {one["name"]: one["value"] for one in case["constants"]}
    assert constants == {
        "WIDTH": 2, "more": 30, "B": 3, "HEADS": 4, "POINTS": 100, "LEVELS": [[64, 32], [8, 8]], "range()": 20
    }  # fmt: skip
    (points,) = [one["address"] for one in case["constants"] if one["name"] == "POINTS"]
    assert points == "tests/test_subject.py:6:19"


def test_other_arguments_and_constants(run_block):
    done = run_block(
        FILES,
        arguments={"count": 5, "wide": False, "mode": {"choice": 0}, "scale": 3, "sizes": [[9, 9]]},
        constants={
            "tests/test_subject.py:7:9": [[5, 1]], "tests/test_subject.py:6:19": 7, "tests/helper.py:1:8": 1
        },
        **PLACE,
    )  # fmt: skip
    assert "(5, False, 'zeros', 3, ((9, 9),), 28, ((5, 1),))" in done.of("end")[0]["message"]


def test_a_constant_that_is_not_there(run_block):
    code = "N = 5\ndef test_it():\n    assert N\n"
    done = run_block({"test_subject.py": code}, constants={"test_subject.py:9:9": 1})
    assert "no constant that may be changed" in json.dumps(done.events)


@pytest.mark.slow
def test_inputs_are_made_small_and_fit_a_smaller_case(run_block):
    """One element of 800 matters; it is carried over to the two of a case that seeds hardly ever hit."""
    done = run_block({"test_subject.py": TENSORS}, reduce={"key": KEY, "seconds": 100})
    (reduced,) = done.of("reduced")
    assert reduced["complete"]
    assert (reduced["left"], reduced["drawn"]) == (1, 800 + 40)
    (element,) = reduced["elements"]
    assert (element["op"], element["value"]) == ("rand", 1.0)
    assert len(done.of("end")) == reduced["trials"] < 300
    smaller = run_block(
        {"test_subject.py": TENSORS},
        constants={"test_subject.py:2:16": 1, "test_subject.py:2:19": 1},
        reduce={"key": KEY, "seconds": 100},
        replay={"5": reduced["path"].split("/")[-1]},
        inputs=str(done.folder / "inputs"),
        seeds=[5],
        mode="replay",
    )
    (fitted,) = smaller.of("reduced")
    assert [one["index"][:2] for one in fitted["elements"]] == [[0, 0]]
    assert fitted["comparisons"][0]["shape"] == [1, 1, 2]
    assert (smaller.folder / fitted["path"]).is_file()


@pytest.mark.slow
def test_zeros_are_not_put_where_the_failure_becomes_a_division_of_0_by_0(run_block):
    done = run_block({"test_subject.py": QUOTIENT}, reduce={"seconds": 100})
    (reduced,) = done.of("reduced")
    assert (reduced["left"], reduced["manners"]) == (3, ["two numbers"])


@pytest.mark.slow
def test_a_smaller_case_has_to_differ_in_the_same_manner(run_block):
    known = {"key": KEY, "seconds": 100, "manners": ["expected is no number"]}
    done = run_block({"test_subject.py": QUOTIENT}, reduce=known)
    assert not done.of("reduced")
    assert set(done.outcomes) == {"FAILED"}


def test_another_failure_is_not_the_one(run_block):
    code = {"test_subject.py": "def test_it():\n    assert False\n"}
    done = run_block(code, reduce={"key": "AssertionError in test_it: comparison 1"})
    assert not done.of("reduced")
    assert done.outcomes == ["FAILED"] * 3


def test_a_failure_by_chance_is_not_confirmed(run_block):
    code = "COUNT = [0]\ndef test_it():\n    COUNT[0] += 1\n    assert COUNT[0] % 2 == 0\n"
    done = run_block({"test_subject.py": code}, reduce={"confirm": 3})
    assert not done.of("reduced")


def test_a_test_without_tensors(run_block):
    code = "import random\nN = 5\ndef test_it():\n    assert random.randrange(N) != 3\n"
    done = run_block({"test_subject.py": code}, reduce={}, seeds=list(range(40)))
    (reduced,) = done.of("reduced")
    assert (reduced["path"], reduced["signature"]["function"]) == (None, "test_it")


def test_time_is_up(run_block):
    code = "import time\ndef test_it():\n    time.sleep(0.3)\n    assert False\n"
    done = run_block({"test_subject.py": code}, reduce={"seconds": 0.2})
    assert not done.of("reduced")
    assert len(done.of("end")) == 1
