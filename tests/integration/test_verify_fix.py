"""`repro verify-fix` on planted subjects: a fix is told from what only looks like one."""

from __future__ import annotations

import difflib
import json

import pytest
from command_line import Kit, git

pytestmark = pytest.mark.slow

MATRIX = """\
subject: {path: subject, test_file: tests/test_half.py, test: test_half}
trials: {count: 60, block: 60}
limits: {memory: 600m, trial_timeout: 20s, startup_timeout: 3m}
profiles:
  cpu: {python: "3.11", torch: "2.13.0", triton: pinned, cuda: cpu}
"""
KERNEL = "def half(x):\n    return x / 2 + (0.1 if 0 < x < 0.3 else 0)\n"
TEST = """\
import random

import pytest

from kernel import half


def test_half():
    x = random.random()
    assert abs(half(x) - x / 2) < 1e-6


@pytest.mark.parametrize("x", [-1, 0])
def test_small(x):
    assert half(x) == x / 2
"""
ONCE = ("--times", 1)
FIX = KERNEL.replace(" + (0.1 if 0 < x < 0.3 else 0)", "")


def diff(name: str, old: str, new: str) -> str:
    lines = (text.splitlines(keepends=True) for text in (old, new))
    return "".join(difflib.unified_diff(*lines, f"a/{name}", f"b/{name}"))


class Fixing(Kit):
    """A kit whose subject fails for three inputs in ten."""

    def verify(self, *arguments: object, status: int = 5) -> dict[str, object]:
        told = json.loads(self.run("verify-fix", "--engine", "host", "--json", *arguments, status=status))
        assert isinstance(told, dict)
        return told

    def patch(self, new: str, *, name: str = "kernel.py", old: str = KERNEL) -> str:
        (self.home / "fix.patch").write_text(diff(name, old, new))
        return "fix.patch"


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    home = tmp_path_factory.mktemp("fixing")
    (home / "matrix.yaml").write_text(MATRIX)
    (home / "subject" / "tests").mkdir(parents=True)
    (home / "subject" / "kernel.py").write_text(KERNEL)
    (home / "subject" / "tests" / "test_half.py").write_text(TEST)
    (home / "subject" / "pytest.ini").write_text("[pytest]\naddopts = -p no:hypothesispytest\n")
    git(home / "subject", "init", "-q", "-b", "main")
    git(home / "subject", "add", "-A")
    git(home / "subject", "commit", "-qm", "Begin")
    kit = Fixing(home, home / "state")
    kit.matrix("--engine", "host")
    yield kit
    assert not git(home / "subject", "status", "--porcelain"), "the user's files were changed"
    assert (home / "subject" / "kernel.py").read_text() == KERNEL


def test_a_real_fix(kit):
    told = kit.verify("--patch", kit.patch(FIX), "--times", 2, status=0)
    assert (told["verdict"], told["shown"]) == ("fixed", True)
    assert told["claim"]["clean_runs"] >= told["claim"]["clean_runs_needed"]
    assert all(each["as_is"]["failed"] == 2 and not each["fixed"]["failed"] for each in told["replays"])
    assert told["pairs"]["as_is_only"] > told["pairs"]["fixed_only"] == told["pairs"]["both"] == 0
    assert told["changed"] == {"code": ["kernel.py"], "test": [], "other": []}
    assert told["fixed"]["revision"].startswith(told["as_is"]["revision"] + "+")


def test_a_revision(kit):
    (kit.home / "subject" / "kernel.py").write_text(FIX)
    git(kit.home / "subject", "commit", "-qam", "Fix")
    git(kit.home / "subject", "tag", "fixed")
    git(kit.home / "subject", "reset", "-q", "--hard", "HEAD~1")
    assert kit.verify("--ref", "fixed", *ONCE, status=0)["verdict"] == "fixed"
    assert "is the subject as it is" in kit.complaint("verify-fix", "--ref", "main", status=2)


def test_half_of_the_failures(kit):
    told = kit.verify("--patch", kit.patch(KERNEL.replace("0.3", "0.12")), *ONCE)
    assert told["verdict"] == "fewer failures"
    assert told["fixed"]["rate"]["failed"] > 0
    assert told["pairs"]["fixed_only"] == 0


def test_another_exception(kit):
    raises = "def half(x):\n    if 0 < x < 0.3:\n        raise ValueError(x)\n    return x / 2\n"
    told = kit.verify("--patch", kit.patch(raises), *ONCE)
    assert told["verdict"] == "fails otherwise"
    (way,) = told["fixed"]["new_ways"]
    assert way["outcome"] == "FAILED_OTHERWISE"
    assert "ValueError in half" in way["signature"] or "ValueError in test_half" in way["signature"]


def test_a_fix_that_breaks_another_test(kit):
    told = kit.verify("--patch", kit.patch(FIX.replace("x / 2", "max(x, 0) / 2")), "--passes-too", *ONCE)
    assert (told["verdict"], told["shown"]) == ("fixed", False)
    assert told["beside"]["ran"] == 2
    assert [each["test"] for each in told["beside"]["broken"]] == ["test_small[-1]"]
    assert "The fix breaks test_small[-1]: FAILED" in "\n".join(told["said"])


def test_a_loosened_tolerance(kit):
    patch = kit.patch(TEST.replace("1e-6", "1.0"), name="tests/test_half.py", old=TEST)
    told = kit.verify("--patch", patch, *ONCE, status=0)
    assert told["changed"]["test"] == ["tests/test_half.py"]
    assert told["said"][1].startswith("The fix changes the test alone (`tests/test_half.py`)")


def test_a_patch_that_does_not_apply(kit):
    said = kit.complaint("verify-fix", "--patch", kit.patch(FIX, old="def other():\n"), status=2)
    assert said.startswith("error: fix.patch does not apply: ")
    assert "  next: make it anew with `git diff`" in said


def test_without_a_failure_in_the_ledger(kit):
    arguments = ("verify-fix", "--engine", "host", "--patch", kit.patch(FIX), "--test", "test_small[0]")
    assert "the ledger has no failure of test_small[0]" in kit.complaint(*arguments, status=6)
