"""What is measured of a comparison, held against a plain computation."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.trial.comparing import agreeing, measure_numbers, measure_torch
from repro.trial.comparing.comparisons import Compared, Comparisons
from repro.trial.comparing.measure_numbers import measure_arrays
from repro.trial.comparing.measure_torch import measure_close, measure_tensors

VALUES = st.sampled_from([0.0, 1.0, 1.0 + 1e-6, -2.5, 1e30, 1e-30, math.inf, -math.inf, math.nan])
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12)


def plain(pairs, atol, rtol, equal_nan):
    """The same facts, element by element."""
    errors, ratios, wrong = [], [], []
    for i, (x, y) in enumerate(pairs):
        same = x == y or (equal_nan and math.isnan(x) and math.isnan(y))
        error = 0.0 if same else abs(x - y)
        errors.append(math.inf if math.isnan(error) else error)
        if not same and not (math.isfinite(errors[-1]) and errors[-1] <= atol + rtol * abs(y)):
            wrong.append(i)
    return errors, ratios, wrong


@pytest.mark.parametrize("library", ["torch", "numpy"])
@pytest.mark.parametrize("chunk", [4, 2**20])
@given(pairs=PAIRS, equal_nan=st.booleans())
@settings(max_examples=60, deadline=None)
def test_measured_as_computed_by_hand(library, chunk, pairs, equal_nan):
    atol, rtol = 1e-5, 1e-3
    errors, _ratios, wrong = plain(pairs, atol, rtol, equal_nan)
    x, y = (torch.tensor(values, dtype=torch.float64) for values in zip(*pairs, strict=True))
    passed = not wrong
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure_torch, "CHUNK", chunk)
        patch.setattr(agreeing, "CHUNK", 0 if library == "torch" else chunk)
        patch.setattr(agreeing, "PART", chunk)
        patch.setattr(measure_numbers, "CHUNK", chunk)
        if library == "torch":
            found = measure_tensors(torch, x, y, atol, rtol, equal_nan, passed)
        else:
            found = measure_arrays(np, x.numpy(), y.numpy(), atol, rtol, equal_nan, passed)
    assert found["mismatched"] == len(wrong)
    assert found["max_abs"] == max(errors)
    assert found["max_abs_at"]["index"] == [errors.index(max(errors))]
    assert found["nan"] == [sum(map(math.isnan, side)) for side in zip(*pairs, strict=True)]
    assert found["inf"] == [sum(map(math.isinf, side)) for side in zip(*pairs, strict=True)]
    if wrong:
        assert sorted(one["index"][0] for one in found["worst"]) == wrong


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.bool, torch.complex64, torch.uint8],
)
@pytest.mark.parametrize("shift", [0, 1])
def test_every_dtype(dtype, shift):
    expected = torch.zeros(2, 3).to(dtype)
    actual = expected.clone()
    actual[1, 2] = shift
    found = measure_tensors(torch, actual, expected, 0.0, 0.0, False, not shift)
    assert found["mismatched"] == found["max_abs"] == shift
    assert found["max_abs_at"]["index"] == ([1, 2] if shift else [0, 0])
    assert found["dtype"] == str(dtype).removeprefix("torch.")


def test_large_tensors_that_agree_take_one_pass(monkeypatch):
    monkeypatch.setattr(agreeing, "CHUNK", 100)
    monkeypatch.setattr(agreeing, "PART", 100)
    expected = torch.arange(1000.0).reshape(10, 100).t()
    actual = expected.clone()
    actual[40, 7] += 1e-4
    found = measure_tensors(torch, actual, expected, 1.0, 0.0, False, True)
    assert found["max_abs_at"]["index"] == [40, 7]
    assert found["mismatched"] == 0


def test_the_worst_elements_come_first():
    expected = torch.zeros(100)
    actual = torch.arange(100.0)
    found = measure_tensors(torch, actual, expected, 50.0, 0.0, False, False)
    assert [one["index"][0] for one in found["worst"]] == list(range(99, 83, -1))
    assert found["mismatched"] == 49
    other = measure_tensors(torch, actual + 0.5, expected, 50.5, 0.0, False, False)
    assert found["mismatched_at"] == other["mismatched_at"]
    assert (
        found["mismatched_at"]
        != measure_tensors(torch, actual, expected, 51.0, 0.0, False, False)["mismatched_at"]
    )


def test_tolerances_are_those_in_force():
    half, double = torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.float64)
    assert measure_close(torch, {"actual": half, "expected": half}, True)[0]["rtol"] == 1e-3
    assert measure_close(torch, {"actual": double, "expected": double}, True)[0]["atol"] == 1e-7
    assert measure_close(torch, {"actual": 1.0, "expected": 1.0}, True)[0]["atol"] == 1e-7
    given_ = {"actual": half, "expected": half, "atol": 0.5, "rtol": 0.25}
    found = measure_close(torch, given_, True)[0]
    assert (found["atol"], found["rtol"]) == (0.5, 0.25)


def wrapped(comparisons):
    compared = Compared(
        "close", ("actual", "expected"), lambda bound, passed: measure_close(torch, bound, passed)
    )
    return comparisons.wrap(torch.testing.assert_close, compared)


def test_measuring_leaves_no_trace():
    comparisons = Comparisons()
    close = wrapped(comparisons)
    x = torch.rand(5, requires_grad=True)
    y = (x * 1.0).clone()
    version, state = y._version, torch.get_rng_state()
    comparisons.begin()
    close(y, x)
    assert (y._version, torch.equal(torch.get_rng_state(), state)) == (version, True)
    y.sum().backward()
    assert x.grad is not None
    assert comparisons.end()[0]["passed"] is True


@pytest.mark.parametrize(
    "values",
    [
        (torch.ones(2).to_sparse(), torch.ones(2).to_sparse()),
        (torch.ones(2, device="meta"), torch.ones(2, device="meta")),
        (torch.ones(2), torch.ones(3)),
        (torch.ones(2), "text"),
        ("text", "text"),
    ],
)
def test_what_cannot_be_measured_does_not_reach_the_test(values):
    def outcome(function):
        try:
            function(*values)
        except Exception as error:
            return type(error), str(error)
        return None

    comparisons = Comparisons()
    close = wrapped(comparisons)
    comparisons.begin()
    assert outcome(close) == outcome(torch.testing.assert_close)
    assert len(comparisons.end()) == 1


def test_no_more_than_a_bounded_number_is_kept():
    comparisons = Comparisons()
    close = wrapped(comparisons)
    comparisons.begin()
    for _ in range(230):
        close(1.0, 1.0)
    found = comparisons.end()
    assert len(found) == 201
    assert found[-1]["left_out"] == 30
    close(1.0, 1.0)
    assert comparisons.end() == []
