"""`repro inspect` and `repro debug` over planted subjects, with the interpreter at hand."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time

import pytest
from command_line import Kit

from repro.store import Ledger

pytestmark = pytest.mark.slow

WRONG = """
import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return torch.where(x > 0.9, 2.2, 2.0) * x * grad

def test_it():
    x = torch.rand(6)
    a, b = (x.clone().requires_grad_() for _ in range(2))
    w = torch.rand(6)
    Square.apply(a).backward(w)
    (b**2).backward(w)
    torch.testing.assert_close(a.grad, b.grad)
"""
FREE = """
def test_it():
    assert seed() % 3 != 1, "a third of them"
"""


class Roomy(Kit):
    """A kit whose trials may load torch's compiler and distributed tensors, which `assert_close` does."""

    def plant(self, code, **more):
        super().plant(code, **more)
        file = self.home / "matrix.yaml"
        roomy = file.read_text().replace("600m", "3g").replace("trial_timeout: 3s", "trial_timeout: 60s")
        file.write_text(roomy)


@pytest.fixture
def kit(tmp_path):
    return Roomy(tmp_path, tmp_path / "state")


def trials(kit):
    with Ledger.open(kit.state / "ledger.sqlite") as ledger:
        return [(trial.seed, trial.outcome) for trial in ledger.trials(repeats=True)]


def typed(command, folder, *lines):
    """Run a command on a terminal of its own, typing a line at each prompt; all that it showed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    shown, waiting, until = b"", list(lines), time.monotonic() + 240
    while time.monotonic() < until:
        if not select.select([ours], [], [], 1)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the other end was closed
            break
        if waiting and shown.endswith(b"(Pdb) "):
            os.write(ours, waiting.pop(0).encode() + b"\n")
    os.close(ours)
    return process.wait(timeout=30), shown.decode()


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
