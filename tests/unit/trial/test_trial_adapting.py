"""An adapter in a cell: it sees the operator's calls however imported, and is asked about failures."""

import json
import sys

import pytest

torch = pytest.importorskip("torch")

from repro.trial.adapter.adapting import AdapterFile, Asked  # noqa: E402
from repro.trial.adapter.calls import BadAdapter, Calls, load_adapter  # noqa: E402
from repro.trial.writer import RecordFile  # noqa: E402

OPERATOR = """\
import torch


class Folded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x.abs() * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, 1.0, -1.0) * grad * ctx.scale, None


def operator(x, scale=1.0):
    return Folded.apply(x, scale)


def reference(x, scale=1.0):
    return torch.where(x >= 0, x, -x) * scale
"""
ADAPTER = """\
FUNCTION = "operator"
COORDINATES = ("x",)


def jumps(arguments, name, index):
    x = float(arguments[name][tuple(index)])
    grad, scale = float(arguments["grad_out"][tuple(index)]), arguments["scale"]
    return [{"coordinate": x, "unit": "number", "jump": 0.0, "distance": abs(x), "distance_ulp": 0.0,
             "left": -grad * scale, "right": grad * scale, "seen": sorted(arguments)}]


def predicted_rate(arguments, tolerance):
    return tolerance["atol"] * arguments["x"].numel()
"""
TEST = """\
import torch
from operators import operator as renamed, reference


def gradient(function):
    leaf = torch.tensor([[1.0, 0.0, -2.0], [3.0, -1.0, 0.0]], requires_grad=True)
    function(leaf, scale=3.0).backward(torch.full_like(leaf, 2.0))
    leaf.data.fill_(9.0)
    return leaf.grad


def test_it():
    torch.testing.assert_close(torch.ones(2), torch.ones(2))
    torch.testing.assert_close(gradient(renamed), gradient(reference), atol=0.001, rtol=0.0)
"""
X = torch.tensor([[1.0, 0.0, -2.0], [3.0, -1.0, 0.0]])
WEIGHT = torch.full_like(X, 2.0)
OPERATORS: dict = {}
exec(OPERATOR, OPERATORS)


def told_by(path):
    events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {
        kind: [one for one in events if one["event"] == kind] for kind in ("jump", "predicted", "trouble")
    }


@pytest.fixture
def ask(tmp_path):
    """Run a function as a test's body, compare what it returns, and tell what the adapter said."""

    def go(body, *, adapter=ADAPTER, passed=False, most=20):
        loaded = load_adapter("adapter.py", adapter)
        calls = Calls(torch, loaded)
        file = AdapterFile(RecordFile(tmp_path / "adapter.jsonl"))
        asked = Asked(torch, loaded, calls, file, 7, most)
        with calls.watching():
            actual, expected = body()
        asked.note(1, "here", {"actual": actual, "expected": expected, "atol": 0.001, "rtol": 0.0}, passed)
        asked.end()
        return told_by(tmp_path / "adapter.jsonl")

    return go


def gradient(name, x=X):
    leaf = x.clone().requires_grad_()
    return torch.autograd.grad(OPERATORS[name](leaf, 3.0), leaf, WEIGHT)[0]


def test_in_a_cell(run_block):
    files = {"operators.py": OPERATOR, "test_subject.py": TEST}
    asked = {"name": "adapter.py", "source": ADAPTER}
    done = run_block(files, seeds=[7], adapter=asked, python_path=["."])
    told = told_by(done.folder / "adapter.jsonl")
    assert done.outcomes == ["FAILED"]
    assert [jump["element"] for jump in told["jump"]] == [[0, 1], [1, 2]]
    assert told["jump"][0] == {
        "event": "jump",
        "seed": 7,
        "comparison": 1,
        "leaf": 0,
        "argument": "x",
        "element": [0, 1],
        "coordinate": 0.0,
        "unit": "number",
        "jump": 0.0,
        "distance": 0.0,
        "distance_ulp": 0.0,
        "left": -6.0,
        "right": 6.0,
        "seen": ["grad_out", "scale", "x"],
    }
    assert told["predicted"] == [
        {"event": "predicted", "seed": 7, "argument": "x", "rate": 0.006, "atol": 0.001, "rtol": 0.0}
    ]
    assert not told["trouble"]


def test_gradients_that_grad_gave(ask):
    told = ask(lambda: (gradient("operator"), gradient("reference")))
    assert [jump["element"] for jump in told["jump"]] == [[0, 1], [1, 2]]
    assert (told["jump"][0]["left"], told["jump"][0]["right"]) == (-6.0, 6.0)


def test_the_operator_may_be_the_expected_side(ask):
    assert len(ask(lambda: (gradient("reference"), gradient("operator")))["jump"]) == 2


def test_at_most_so_many_elements(ask):
    assert len(ask(lambda: (gradient("operator"), gradient("reference")), most=1)["jump"]) == 1


def test_nested_gradients(ask):
    told = ask(lambda: ([X, gradient("operator")], [X, gradient("reference")]))
    assert {jump["leaf"] for jump in told["jump"]} == {1}


def test_a_passing_comparison_has_a_predicted_rate_alone(ask):
    x = X + 5
    told = ask(lambda: (gradient("operator", x), gradient("reference", x)), passed=True)
    assert (len(told["jump"]), len(told["predicted"]), told["trouble"]) == (0, 1, [])


def test_a_comparison_of_something_else_is_left_alone(ask):
    def body():
        gradient("operator")
        return X, X + 1

    assert ask(body) == {"jump": [], "predicted": [], "trouble": []}


def test_a_function_of_that_name_with_other_arguments_is_another(ask):
    def operator(y):
        return y

    told = ask(lambda: (operator(X), X + 1))
    assert told["trouble"][0]["message"] == (
        "the test called no function named operator with these arguments"
    )


def test_an_adapter_that_fails_is_no_outcome_of_the_test(ask):
    adapter = ADAPTER.replace('arguments["scale"]', "arguments['wrong']")
    told = ask(lambda: (gradient("operator"), gradient("reference")), adapter=adapter)
    assert told["trouble"][0]["message"] == "comparison 1: KeyError: 'wrong'"


@pytest.mark.parametrize("hold", [lambda f: [f], lambda f: {"op": f}, lambda f: lambda *args: f(*args)])
def test_functions_are_seen_wherever_they_are_held_and_given_back(ask, hold):
    function = OPERATORS["operator"]
    held = hold(function)

    def body():
        leaf = X.clone().requires_grad_()
        call = held[0] if isinstance(held, list) else held["op"] if isinstance(held, dict) else held
        return torch.autograd.grad(call(leaf, 3.0), leaf, WEIGHT)[0], gradient("reference")

    assert len(ask(body)["jump"]) == 2
    assert OPERATORS["operator"] is function
    assert not isinstance(held, list) or held[0] is function


def test_a_function_that_comes_into_being_later_is_seen_by_the_profiler(ask):
    before = sys.getprofile()

    def body():
        later: dict = {}
        exec(OPERATOR.replace("def operator", "def renamed"), later)
        leaf = X.clone().requires_grad_()
        return torch.autograd.grad(later["renamed"](leaf, 3.0), leaf, WEIGHT)[0], gradient("reference")

    assert len(ask(body, adapter=ADAPTER.replace('"operator"', '"renamed"'))["jump"]) == 2
    assert sys.getprofile() is before


def test_wrong_arguments_are_the_functions_own_error(ask):
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        ask(lambda: OPERATORS["operator"]())


@pytest.mark.parametrize(
    ("adapter", "message"),
    [
        ("FUNCTION = 'operator'\nCOORDINATES = ('x',)\n", r"adapter\.py has no jumps"),
        (
            "import nothing_of_that_name\n",
            r"adapter\.py cannot be run: ModuleNotFoundError: No module named 'noth",
        ),
    ],
)
def test_an_adapter_that_cannot_be_used(adapter, message):
    with pytest.raises(BadAdapter, match=message):
        load_adapter("adapter.py", adapter)


def test_a_cell_runs_nothing_with_an_adapter_that_cannot_be_used(run_block):
    asked = {"name": "adapter.py", "source": "FUNCTION = 'operator'\n"}
    done = run_block({"test_subject.py": "def test_it():\n    pass\n"}, adapter=asked)
    assert done.outcomes == []
    assert told_by(done.folder / "adapter.jsonl")["trouble"][0]["message"] == "adapter.py has no COORDINATES"


def test_a_test_without_torch(run_block):
    asked = {"name": "adapter.py", "source": ADAPTER}
    done = run_block({"test_subject.py": "def test_it():\n    assert False\n"}, seeds=[1], adapter=asked)
    assert done.outcomes == ["FAILED"]
    told = told_by(done.folder / "adapter.jsonl")
    assert [one["message"] for one in told["trouble"]] == ["the test loads no torch"]
