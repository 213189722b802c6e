"""Compared gradients held against differences and torch's gradcheck, over planted causes."""

from __future__ import annotations

import json

import pytest
from planting import plant
from terminal import Roomy

pytestmark = pytest.mark.slow


@pytest.fixture
def planted(tmp_path):
    def make(name: str) -> Roomy:
        plant(tmp_path, name, decoys=False)
        matrix = tmp_path / "matrix.yaml"
        matrix.write_text(matrix.read_text().replace("trial_timeout: 20s", "trial_timeout: 60s"))
        return Roomy(tmp_path, tmp_path / "state")

    return make


def looked_at(kit, *options):
    told = json.loads(kit.run("inspect", "--engine", "host", "--gradcheck", "--json", *options))
    (seen,) = told["cells"]
    return seen


def test_a_jump_fails_at_the_elements_on_it(planted):
    """The derivatives to both sides differ there, each compared one has one, gradcheck takes neither."""
    seen = looked_at(planted("derivative_jump"), "--seed", 0)
    failing = [one for one in seen["derivatives"] if not one["control"]]
    assert failing
    for one in failing:
        assert one["jump"]
        assert {one["actual_fits"], one["expected_fits"]} == {"left", "right"}
    on_it = {tuple(one["element"]) for one in failing}
    for check in seen["gradchecks"]:
        assert (check["passed"], check["elements"], check["of"]) == (False, 12, 12)
        assert {tuple(each["element"]) for each in check["apart"]} >= on_it


def test_nothing_wrong_passes(planted):
    seen = looked_at(planted("clean"), "--seed", 0)
    assert [(one["side"], one["passed"]) for one in seen["gradchecks"]] == [("actual", True)]
    assert seen["end"]["outcome"] == "PASSED"


def test_the_smallest_case_is_checked(planted):
    """One element, whose gradient has a wrong factor: it fails on that side alone, and nothing jumps."""
    kit = planted("wrong_factor")
    told = json.loads(kit.run("minimize", "--engine", "host", "--seed", 4, "--seeds", 2, "--json"))
    checks = told["gradients"]["gradchecks"]
    assert [(one["side"], one["passed"], one["elements"], one["of"]) for one in checks] == [
        ("actual", False, 1, 1),
        ("expected", True, 1, 1),
    ]
    (apart,) = checks[0]["apart"]
    assert apart["analytical"] / apart["numerical"] == pytest.approx(2 / 3, rel=1e-3)
    assert {(one["jump"], one["actual_fits"]) for one in told["gradients"]["derivatives"]} == {
        (False, "none")
    }
    text = kit.run("inspect", "--engine", "host", "--minimized", "--seconds", 30)
    assert set(told["gradients"]["said"]) <= {line.removeprefix("- ") for line in text.splitlines()}
    assert "fails at 1 of 1 elements; [0] is 2, by differences 3.0000" in text
