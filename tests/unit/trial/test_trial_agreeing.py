"""A comparison that is measured in place of being made: the verdict stays torch's, the price stays low."""

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from repro.trial.comparing import agreeing
from repro.trial.comparing.agreeing import agreement, numbers_of
from repro.trial.comparing.comparisons import Comparisons
from repro.trial.comparing.measure_torch import measure_tensors
from repro.trial.comparing.patches import patch_torch

OWN = torch.testing.assert_close, torch.allclose
VIEWS = ("view", "unbind", "detach", "select", "split", "slice")
SPECIAL = st.sampled_from([0.0, -0.0, 1e-45, 1e-38, 3e38, -3e38, math.inf, -math.inf, math.nan])
VALUES = st.one_of(SPECIAL, st.floats(-1e3, 1e3, width=32))
TOLERANCES = st.sampled_from([0.0, 1e-45, 1e-31, 1e-8, 1e-3, 0.5, 1e31])
SHIFTS = st.sampled_from([0.0, 0.5, 0.9985, 0.9995, 1.0 - 1e-7, 1.0, 1.0 + 1e-7, 1.001, 2.0])
"""Errors in units of the tolerance."""


class Operations(TorchDispatchMode):
    """Names what torch does, views apart: each is a kernel's launch on a GPU."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket.__name__ not in VIEWS:
            self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def comparisons(monkeypatch):
    """Torch's comparisons as a trial has them, for one test."""
    pair = torch.testing._comparison.TensorLikePair
    for owner, name in (
        (torch.testing, "assert_close"),
        (torch, "allclose"),
        (torch.Tensor, "allclose"),
        (pair, "_compare_regular_values_close"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    found = Comparisons()
    patch_torch(found, torch)
    return found


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Have small tensors measured by torch, as those of a GPU are."""
    monkeypatch.setattr(agreeing, "CHUNK", 0)


@pytest.fixture(params=["numpy", "torch"])
def measured_by(request):
    if request.param == "torch":
        request.getfixturevalue("as_on_a_gpu")
    return request.param


def said(compare, x, y, *args, **options):
    """What a comparison makes of two tensors, to the letter."""
    try:
        return compare(x, y, *args, **options)
    except Exception as error:
        return type(error), str(error)


@given(
    pairs=st.lists(st.tuples(VALUES, VALUES | st.none(), SHIFTS), min_size=1, max_size=6),
    atol=TOLERANCES,
    rtol=TOLERANCES,
    equal_nan=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16]),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_verdict_is_torchs_own(comparisons, measured_by, pairs, atol, rtol, equal_nan, dtype):
    expected = [y if other is None else other for y, other, _ in pairs]
    near = [
        y + shift * (atol + rtol * abs(y)) if other is None else y
        for y, (_, other, shift) in zip(expected, pairs, strict=True)
    ]
    x, y = torch.tensor(near, dtype=dtype), torch.tensor(expected, dtype=dtype)
    options = {"atol": atol, "rtol": rtol, "equal_nan": equal_nan}
    own = [said(compare, x, y, **options) for compare in OWN]
    comparisons.begin()
    found = [said(torch.testing.assert_close, x, y, **options), said(torch.allclose, x, y, **options)]
    records = comparisons.end()
    assert found == own
    assert [one["passed"] for one in records] == [own[0] is None, own[1] is True]
    assert all(bool(one["mismatched"]) != one["passed"] for one in records if "mismatched" in one)


@pytest.mark.parametrize("size", [1000, 5_000_000])
@pytest.mark.parametrize("tolerances", [(1e-3, 1e-2), (1e-3, 0.0)])
def test_a_passed_comparison_takes_no_more_operations_measured_than_bare(
    comparisons, as_on_a_gpu, size, tolerances
):
    x = torch.rand(size)
    options = dict(zip(("atol", "rtol"), tolerances, strict=True))
    with Operations() as bare:
        OWN[0](x, x + 1e-6, **options)
    comparisons.begin()
    with Operations() as measured:
        torch.testing.assert_close(x, x + 1e-6, **options)
    assert comparisons.end()[0]["ratio"] < 0.01
    assert len(measured.names) <= min(14, len(bare.names))  # x + 1e-6 is one of them
    waits = {"_local_scalar_dense", "item", "nonzero", "is_nonzero", "equal"}
    assert not waits.intersection(measured.names)  # the one wait is that of `tolist`, which is no operation


def test_half_precision_is_measured_in_few_operations_after_torchs_verdict(comparisons, as_on_a_gpu):
    x = torch.rand(1000).half()
    comparisons.begin()
    with Operations() as bare:
        OWN[0](x, x)
    with Operations() as measured:
        torch.testing.assert_close(x, x)
    assert comparisons.end()[0]["max_abs"] == 0.0
    assert len(measured.names) <= len(bare.names) + 15


FINITE = st.one_of(st.sampled_from([0.0, -0.0, 1e30, 1e-30]), st.floats(-1e6, 1e6, width=32))


@given(
    pairs=st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=12),
    part=st.sampled_from([4, 2**23]),
    tolerances=st.sampled_from([(1e-3, 1e-2), (1e-3, 0.0), (0.0, 1e-2)]),
)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_numbers_are_those_of_a_plain_computation(measured_by, pairs, part, tolerances):
    atol, rtol = tolerances
    if not atol:
        pairs = [(x if y else 0.0, y) for x, y in pairs]  # relative to zero, only zero is close
    x, y = (torch.tensor(side, dtype=torch.float64) for side in zip(*pairs, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agreeing, "PART", part)
        found = numbers_of(torch, x, y, atol, rtol)
    errors = [abs(a - b) for a, b in pairs]
    relative = [abs(a - b) / abs(b) if b else 0.0 for a, b in pairs]
    ratios = [abs(a - b) / (atol + rtol * abs(b)) if a != b else 0.0 for a, b in pairs]
    assert (found["max_abs"], found["max_rel"]) == (max(errors), max(relative))
    assert found["max_abs_at"]["index"] == [errors.index(max(errors))]
    assert found["max_rel_at"]["index"] == [relative.index(max(relative))]
    assert found["ratio"] == pytest.approx(max(ratios), rel=1e-12, abs=0.0)


def test_the_order_in_memory_does_not_matter(measured_by):
    x = torch.rand(5, 7, requires_grad=True).t()
    y = x.detach().clone(memory_format=torch.contiguous_format)
    y[6, 2] += 0.5
    found = numbers_of(torch, x, y, 1e-3, 1e-2)
    assert found["max_abs_at"] == {"index": [6, 2], "actual": x[6, 2].item(), "expected": y[6, 2].item()}


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_is_looked_at_element_by_element(measured_by, value):
    x, y = torch.tensor([1.0, value]), torch.tensor([1.0, value])
    assert numbers_of(torch, x, y, 1e-3, 1e-2) is None
    found = measure_tensors(torch, x, y, 1e-3, 1e-2, True, True)
    assert found["nan"] == [int(math.isnan(value))] * 2
    assert found["inf"] == [int(math.isinf(value))] * 2


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (torch.ones(2), torch.ones(2, dtype=torch.float64)),
        (torch.ones(2), torch.ones(1)),
        (torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64)),
        (torch.ones(2, dtype=torch.complex64), torch.ones(2, dtype=torch.complex64)),
        (torch.ones(2, device="meta"), torch.ones(2, device="meta")),
        (torch.ones(2).to_sparse(), torch.ones(2).to_sparse()),
        (torch.ones(0), torch.ones(0)),
        (torch.ones(2), 1.0),
    ],
)
def test_other_pairs_are_left_to_torch(actual, expected):
    assert agreement(torch, actual, expected, 1e-3, 1e-2) is None


def test_pieces_of_nested_data_keep_their_numbers(comparisons):
    x, y = torch.zeros(3, requires_grad=True), torch.tensor([0.0, 1e-4, 0.0])
    comparisons.begin()
    torch.testing.assert_close({"a": [x, y], "b": y}, {"a": [y, y], "b": x}, atol=1e-3, rtol=0.0)
    torch.testing.assert_close(x, x)
    found = comparisons.end()
    assert [(one.get("item"), one["max_abs"] > 0) for one in found] == [
        ("['a'][0]", True),
        ("['a'][1]", False),
        ("['b']", True),
        (None, False),
    ]
    assert found[0]["max_abs_at"]["index"] == [1]
    assert not comparisons.known


def test_outside_a_trial_torch_compares_by_itself(comparisons, monkeypatch):
    monkeypatch.setattr(agreeing, "numbers_of", lambda *_: pytest.fail("measured"))
    torch.testing.assert_close(torch.ones(2), torch.ones(2))
    assert torch.ones(2).allclose(torch.ones(2))


def test_an_error_of_measuring_is_none_of_the_tests(comparisons, monkeypatch):
    def broken(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(agreeing, "numbers_of", broken)
    comparisons.begin()
    torch.testing.assert_close(torch.ones(2), torch.ones(2))
    with pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_close(torch.ones(2), torch.zeros(2))
    assert [one["passed"] for one in comparisons.end()] == [True, False]


def test_a_comparison_that_agrees_is_not_made_at_all(comparisons, monkeypatch):
    def not_needed(*_, **__):
        pytest.fail("torch compared")

    monkeypatch.setattr(torch.testing._comparison, "not_close_error_metas", not_needed)
    x = torch.ones(3)
    comparisons.begin()
    torch.testing.assert_close(x, torch.nn.Parameter(x + 1e-7))
    assert torch.allclose(x, x)
    assert [one["passed"] for one in comparisons.end()] == [True, True]


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((1e-3,), {}),
        ((), {"rtol": 1e-3}),
        ((), {"atol": 1e-3}),
        ((), {"tolerance": 1e-3}),
        ((), {"check_stride": True}),
        ((), {"allow_subclasses": False}),
    ],
)
def test_a_call_that_torch_refuses_is_refused(comparisons, args, options):
    x = torch.ones(3, 3).t()
    y = torch.nn.Parameter(torch.ones(3, 3))
    own = said(OWN[0], x, y, *args, **options)
    comparisons.begin()
    assert said(torch.testing.assert_close, x, y, *args, **options) == own
    assert own is not None
    assert comparisons.end()[0]["passed"] is False


def test_what_does_not_agree_is_measured_for_agreement_once(comparisons, monkeypatch):
    tried = []
    monkeypatch.setattr(agreeing, "numbers_of", lambda *_: tried.append(1))
    comparisons.begin()
    with pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_close(torch.ones(2), torch.zeros(2))
    assert len(tried) == 1
