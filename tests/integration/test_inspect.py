"""`repro inspect` and `repro debug` over planted subjects, with the interpreter at hand."""

from __future__ import annotations

import json

import pytest
from terminal import WRONG, Roomy, piped, typed

from repro.store import Ledger

pytestmark = pytest.mark.slow

FREE = """
def test_it():
    assert seed() % 3 != 1, "a third of them"
"""


@pytest.fixture
def kit(tmp_path):
    return Roomy(tmp_path, tmp_path / "state")


def trials(kit):
    with Ledger.open(kit.state / "ledger.sqlite") as ledger:
        return [(trial.seed, trial.outcome) for trial in ledger.trials(repeats=True)]


def test_a_wrong_gradient(kit):
    kit.plant(WRONG)
    kit.matrix("--engine", "host", "--trials", 8)
    before = trials(kit)
    failing = [seed for seed, outcome in before if outcome == "FAILED"]
    assert failing

    told = json.loads(kit.run("inspect", "--engine", "host", "--json"))
    assert (told["seed"], told["kept_inputs"], told["parting"]) == (failing[0], True, None)
    (seen,) = told["cells"]
    assert seen["begin"]["mode"] == "replay"
    assert seen["end"]["outcome"] == seen["end"]["original"] == "FAILED"
    wrong = [one for one in seen["derivatives"] if not one["control"]]
    assert wrong
    assert {(one["jump"], one["actual_fits"], one["expected_fits"]) for one in wrong} == {
        (False, "none", "both")
    }
    assert {(step["phase"], step["op"]) for step in seen["steps"]} >= {
        ("forward", "aten.pow.Tensor_Scalar"), ("backward", "aten.where.self"),
    }  # fmt: skip

    shown = kit.run("inspect", "--engine", "host", "--rows", 6, "--seconds", 0)
    assert "against float64" in shown
    assert "they compute different things" in shown
    assert "against difference quotients" not in shown
    assert trials(kit) == before

    commands = kit.home / "commands"
    commands.write_text("p tuple(a.grad.shape)\np 6 * 7\ndown\n")
    shown = kit.run("debug", "--engine", "host", "--commands", commands)
    assert "-> torch.testing.assert_close(a.grad, b.grad)\n(Pdb) p tuple(a.grad.shape)\n(6,)\n" in shown
    assert "(Pdb) p 6 * 7\n42\n" in shown
    status, shown = typed(kit.command("debug", "--engine", "host"), kit.home, "p len(w) * 7", "q")
    assert status == 0
    assert "42\r\n" in shown
    assert "AssertionError in call: Tensor-likes are not close!" in shown
    status, shown = piped(kit.command("debug", "--engine", "host"), kit.home, "p len(w) * 7", "c")
    assert (status, "(Pdb) p len(w) * 7\n42\n" in shown) == (0, True)
    assert trials(kit) == before
    passing = next(seed for seed, outcome in before if outcome == "PASSED")
    said = kit.complaint("debug", "--engine", "host", "--seed", passing, "--commands", commands, status=6)
    assert f"seed {passing} did not fail" in said


def test_a_subject_without_tensors(kit):
    kit.plant(FREE)
    kit.matrix("--engine", "host", "--trials", 4)
    shown = kit.run("inspect", "--engine", "host")
    assert "seed 1, FAILED" in shown
    assert "the test loads no torch, so it has no operations to look at" in shown
    assert "needs a terminal" in kit.complaint("debug", "--engine", "host", "--seed", 1, status=2)
