"""What is tried to make a case smaller, and what comes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.minimize.case import Case, Kind, Parameter, parameters_of
from repro.minimize.shrink import Shrinking, Verdict, smallest_integer, smallest_sizes
from repro.minimize.trying import TimeIsUp


def integer(name, value, statement=""):
    return Parameter(key=name, name=name, kind=Kind.INT, value=value, argument=False, statement=statement)


def shrink(parameters, fails, same=lambda case: False):
    """The smallest case's values, and every case that was tried."""
    tried = []

    def attempt(case):
        tried.append(case)
        values = {one.key: case.values.get(one.key, one.value) for one in parameters}
        if same(values):
            return Verdict.SAME
        return Verdict.STAYS if fails(values) else Verdict.GONE

    shrinking = Shrinking(parameters, attempt)
    shrinking.run()
    return {one.key: shrinking.value(one) for one in parameters}, tried, shrinking


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_the_least_integer_of_a_monotone_failure(value, least):
    value = max(value, least)
    tried = []
    found = smallest_integer(value, lambda n: tried.append(n) or n >= least)
    assert found == least
    assert len(tried) <= 2 * value.bit_length() + 1


def test_powers_of_two_are_found_by_halves():
    assert smallest_integer(64, lambda n: n in (64, 32, 16, 8)) == 8


@given(st.lists(st.tuples(st.integers(1, 64), st.integers(1, 64)), min_size=1, max_size=5), st.data())
def test_a_list_shrinks_to_the_element_that_matters(levels, data):
    levels = [list(one) for one in levels]
    wanted = data.draw(st.sampled_from(levels))
    bound = data.draw(st.integers(1, wanted[1]))
    found = smallest_sizes(levels, lambda new: any(one[1] >= bound for one in new), fixed=False)
    assert found == [[1, bound]]


def test_a_list_of_fixed_length_keeps_it():
    assert smallest_sizes([8, 8, 8], lambda new: sum(new) >= 10, fixed=True) == [2, 4, 4]


def test_elements_that_need_each_other_stay():
    assert smallest_sizes([7, 5, 7, 5], lambda new: new.count(5) == 2 and 1, fixed=False) == [5, 5]


def test_parameters_that_depend_on_each_other():
    """Heads must divide channels; 40 of them are needed: a fixed point over both."""
    parameters = [integer("channels", 256), integer("heads", 8), integer("queries", 900)]
    found, tried, _ = shrink(parameters, lambda v: v["channels"] % v["heads"] == 0 and v["channels"] >= 40)
    assert found == {"channels": 40, "heads": 1, "queries": 1}
    assert len(tried) < 40


def test_a_shape_that_is_written_twice_shrinks_at_both_places():
    """`x = randn(3, 16)` and `grad = randn(3, 16)`: neither can change alone."""
    parameters = [integer("x.0", 3), integer("x.1", 16), integer("grad.0", 3), integer("grad.1", 16)]

    def fails(v):
        return (v["x.0"], v["x.1"]) == (v["grad.0"], v["grad.1"]) and v["x.1"] >= 2

    found, tried, _ = shrink(parameters, fails)
    assert found == {"x.0": 1, "x.1": 2, "grad.0": 1, "grad.1": 2}
    assert len(tried) < 10


def test_a_list_of_sizes_that_is_written_twice():
    def sizes(name):
        return Parameter(
            key=name, name=name, kind=Kind.SIZES, value=[4, 64], argument=False, fixed=name == "grad"
        )

    found, _, _ = shrink([sizes("x"), sizes("grad")], lambda v: v["x"] == v["grad"] and v["x"][1] >= 5)
    assert found == {"x": [1, 5], "grad": [1, 5]}


def test_equal_sizes_without_effect_cost_one_case():
    parameters = [integer("n", 9), integer("a", 6), integer("b", 6)]
    _, tried, shrinking = shrink(parameters, lambda v: v["n"] > 1, same=lambda v: v["n"] == 9 and v["a"] == 1)
    assert {one.key for one in shrinking.without_effect} == {"a", "b"}
    assert sum("a" in case.values for case in tried) == 1


def test_every_step_is_kept_only_if_it_fails():
    parameters = [integer("n", 100), integer("m", 7)]
    found, tried, shrinking = shrink(parameters, lambda v: v["n"] * v["m"] >= 350)
    assert found["n"] * found["m"] >= 350
    assert len({case.identity for case in tried}) == len(tried), "a case was tried twice"
    assert shrinking.best.values.items() <= found.items()


def test_a_statement_without_effect_costs_one_case():
    parameters = [integer("big.n", 100, "s:1"), integer("big.m", 60, "s:1"), integer("n", 9, "s:2")]
    _, tried, shrinking = shrink(
        parameters, lambda v: v["n"] > 1, same=lambda v: v["n"] == 9 and v["big.n"] == 1
    )
    assert {one.key for one in shrinking.without_effect} == {"big.n", "big.m"}
    assert sum("big.n" in case.values for case in tried) == 1


def test_options_go_to_their_simplest():
    def option(name, kind, value, choices=()):
        return Parameter(key=name, name=name, kind=kind, value=value, argument=True, choices=choices)

    parameters = [
        option("aligned", Kind.BOOL, True),
        option("mode", Kind.CHOICE, 2, ("zeros", "border", "reflection")),
        option("scale", Kind.FLOAT, 3.7),
        option("dtype", Kind.DTYPE, "float32"),
    ]
    found, tried, _ = shrink(parameters, lambda v: v["mode"] > 0 and v["scale"] >= 1.0)
    assert found == {"aligned": False, "mode": 1, "scale": 1.0, "dtype": "float32"}
    assert not any("dtype" in case.values for case in tried)


def test_what_a_cell_describes():
    described = {
        "arguments": [
            {"name": "kind", "kind": "choice", "value": 1, "choices": ["float32", "float64"]},
            {"name": "mode", "kind": "choice", "value": 1, "choices": ["zeros", "border"]},
        ],
        "constants": [{"address": "t.py:3:4", "name": "N", "value": 9, "statement": 3}],
    }
    kinds = {one.name: one.kind for one in parameters_of(described)}
    assert kinds == {"kind": Kind.DTYPE, "mode": Kind.CHOICE, "N": Kind.INT}
    case = Case().having("mode", 0).having("t.py:3:4", 1)
    assert case.request(parameters_of(described)) == {
        "arguments": {"mode": {"choice": 0}},
        "constants": {"t.py:3:4": 1},
    }
    assert parameters_of(described)[2].label == "N (t.py:3)"


def test_time_that_is_up_leaves_the_smallest_so_far():
    def attempt(case):
        if case.values.get("n") == 25:
            raise TimeIsUp
        return Verdict.STAYS if case.values.get("n", 100) >= 20 else Verdict.GONE

    shrinking = Shrinking([integer("n", 100)], attempt)
    with pytest.raises(TimeIsUp):
        shrinking.run()
    assert shrinking.best.values == {"n": 50}
