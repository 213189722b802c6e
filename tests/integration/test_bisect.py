"""`repro bisect` on real git histories whose culprit is known, with the interpreter at hand."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path

import histories
import pytest
from command_line import Kit, git
from operator_history import operator_change

pytestmark = pytest.mark.slow

KEYS = [
    *("kind", "first_bad", "low", "high", "confidence", "rate_before", "rate_after", "trials", "builds"),
    "skipped",
]
MATRIX = """\
subject: {{path: repository, test_file: {file}, test: "{test}"}}
trials: {{count: {count}}}
limits: {{memory: 1500m, trial_timeout: 20s, startup_timeout: 3m}}
profiles:
  cpu: {{python: "3.11", torch: "2.13.0", triton: pinned, cuda: cpu}}
"""


class Searched(Kit):
    """A kit beside a repository."""

    engine = "host"

    def about(self, history, *, count=120):
        (self.home / "matrix.yaml").write_text(
            MATRIX.format(file=history.test_file, test=history.test, count=count)
        )
        return history

    def arguments(self, history, *more):
        ends = ("--old", history.commits[0], "--new", history.commits[-1])
        return ("bisect", "--axis", "commit", "--repo", history.path, *ends, "--engine", self.engine, *more)

    def bisect(self, history, *more, status=0):
        told = json.loads(self.run(*self.arguments(history, "--json", *more), status=status))
        assert list(told)[: len(KEYS)] == KEYS
        assert not git(history.path, "status", "--porcelain")
        return told

    def surely(self, history, expected, *more):
        """An answer about trials that do not replay: stated with 95 %, it is asked for anew if it is wrong.

        By chance a step may also look like a slope, which is given no name. Wrong three times in a row is one
        case in thousands, or the search is at fault.
        """
        for _ in range(3):
            told, said = self.asked(history, *more)
            if told and {**told, **expected} == told:
                return told
            shutil.rmtree(self.state)
        raise AssertionError(said)

    def asked(self, history, *more):
        """The answer, a name or a range, {} without one; and what was said on the way."""
        done = self.ended(*self.arguments(history, "--json", *more))
        return json.loads(done.stdout) if done.returncode in (0, 5) else {}, done.stderr


@pytest.fixture
def kit(tmp_path):
    return Searched(tmp_path, tmp_path / "state")


def place(tmp_path):
    return tmp_path / "repository"


@pytest.mark.parametrize(("old", "new"), [(0.0, 0.3), (0.2, 0.8)])
@pytest.mark.parametrize("noise", ["inputs", "run"])
def test_a_change_of_the_kernel(kit, tmp_path, old, new, noise):
    history = kit.about(histories.kernel_change(place(tmp_path), old=old, new=new, noise=noise))
    told = kit.surely(history, {"first_bad": history.culprit, "kind": "rises" if old else "appears"})
    assert told["low"] == history.commits[history.commits.index(history.culprit) - 1]
    assert told["high"] == history.culprit
    assert told["confidence"] >= 0.95
    assert told["rate_before"]["rate"] < told["rate_after"]["rate"]
    if noise == "run":
        assert told["method"] == "rates"
    elif not old:
        assert told["method"] == "replay"  # while a test that fails nearly always may do so by chance
    assert told["touched"]["kernel"] or told["touched"]["code"]
    assert not told["touched"]["test"]


def test_a_change_of_our_own_operator(kit, tmp_path):
    history = kit.about(operator_change(place(tmp_path), old=0.0, new=0.3))
    told = kit.bisect(history)
    assert told["first_bad"] == history.culprit
    assert told["method"] == "replay"


def test_a_change_of_the_tests_inputs(kit, tmp_path):
    history = kit.about(histories.input_change(place(tmp_path), old=0.02, new=0.4))
    told = kit.bisect(history)
    assert told["first_bad"] == history.culprit
    assert told["touched"]["test"]
    assert not told["touched"]["kernel"]
    # The newest tests fail with the oldest code as well: the code is not the reason.
    told = kit.bisect(history, "--tests-from", history.commits[-1], "--side-by-side")
    assert told["kind"] == "throughout"
    assert told["beside"]["with each commit's own tests"]["first_bad"] == history.culprit


@pytest.mark.parametrize("with_file", [False, True])
def test_a_test_that_is_born_half_way(kit, tmp_path, with_file):
    history = kit.about(histories.born(place(tmp_path), rate=0.3, with_file=with_file))
    told = kit.bisect(history)
    assert told["kind"] == "throughout"
    assert told["oldest"] == history.culprit
    assert {finding["outcome"] for finding in told["findings"]} == {"TEST_MISSING"}
    text = kit.run(*kit.arguments(history))
    assert f"The oldest commit that has this test is {history.culprit[:10]}" in text
    assert "it fails there in" in text


def test_a_test_is_followed_over_its_names(kit, tmp_path):
    history = kit.about(histories.born(place(tmp_path), rate=0.3, renamed=True))
    told = kit.bisect(history)
    assert told["oldest"] == history.commits[history.names[-1][0]]
    names = [name for _, name in history.names[:-1]]
    told = kit.bisect(history, *(f"--test-map={name}" for name in names))
    assert told["oldest"] == history.culprit
    assert told["kind"] == "throughout"


@pytest.mark.parametrize("hiding", [False, True])
def test_commits_that_do_not_import(kit, tmp_path, hiding):
    history = kit.about(histories.broken_commits(place(tmp_path), old=0.0, new=0.5, hiding=hiding))
    told = kit.bisect(history)
    if not hiding:
        assert told["first_bad"] == history.culprit
        return
    assert told["first_bad"] is None
    first = history.commits.index(history.broken[0])
    assert told["low"] == history.commits[first - 1]
    assert told["high"] == history.commits[first + len(history.broken)]
    assert set(told["skipped"]) == set(history.broken)


@pytest.mark.parametrize("at_merge", [False, True])
def test_a_merge(kit, tmp_path, at_merge):
    history = kit.about(histories.merges(place(tmp_path), old=0.0, new=0.5, at_merge=at_merge))
    told = kit.bisect(history)
    assert told["first_bad"] == (history.culprit if at_merge else history.merge)
    told = kit.bisect(history, "--all-parents")
    assert told["first_bad"] == history.culprit
    assert ("merge" in told) == (not at_merge)


def test_a_revert_is_found_as_a_fix(kit, tmp_path):
    history = kit.about(histories.fixed(place(tmp_path), rate=0.4, noise="run"))
    kit.surely(history, {"kind": "falls", "first_bad": history.fix}, "--find", "fix")
    reverted = kit.about(histories.reverted(tmp_path / "other", rate=0.4))
    told = kit.bisect(reverted, "--find", "fix", "--old", reverted.culprit)
    assert (told["kind"], told["first_bad"]) == ("falls", reverted.fix)
    # From before the failure to after its end there is nothing to see.
    assert kit.bisect(reverted, status=6)["reproduced"] is False


@pytest.mark.parametrize("noise", ["inputs", "run"])
def test_nothing_changed(kit, tmp_path, noise):
    history = kit.about(histories.unchanged(place(tmp_path), rate=0.3, noise=noise))
    kit.surely(history, {"kind": "throughout", "first_bad": None, "low": None, "high": None})


def test_what_never_fails_is_not_reproduced(kit, tmp_path):
    history = kit.about(histories.never_fails(place(tmp_path)))
    told = kit.bisect(history, "--trials", 50, status=6)
    assert told["kind"] == "absent"
    assert told["rate_after"]["trials"] >= 50


def test_a_layout_that_changes(kit, tmp_path):
    history = kit.about(histories.layout(place(tmp_path), old=0.0, new=0.4))
    assert kit.bisect(history)["first_bad"] == history.culprit


@pytest.mark.docker
def test_commits_run_in_containers(kit, tmp_path):
    kit.engine = "docker"
    history = kit.about(histories.kernel_change(place(tmp_path), old=0.0, new=0.3))
    assert kit.bisect(history)["first_bad"] == history.culprit
    broken = kit.about(histories.broken_commits(tmp_path / "other", old=0.0, new=0.5, hiding=True))
    assert kit.bisect(broken)["first_bad"] is None
    steady = kit.about(histories.unchanged(tmp_path / "third", rate=0.4))
    assert kit.bisect(steady)["kind"] == "throughout"


# Killed, short of time, and by hand -------------------------------------------------------------------------


def test_a_search_that_was_killed_goes_on(kit, tmp_path):
    history = kit.about(histories.kernel_change(place(tmp_path), old=0.0, new=0.3, noise="run"))
    command = kit.command(*kit.arguments(history, "--json"))
    process = subprocess.Popen(command, cwd=kit.home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for line in process.stderr:  # until the search is under way
        if b"now: after" in line:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    before = json.loads(kit.run("status", "--json"))
    told, said = kit.asked(history)
    assert told.get("kind") == "appears", said
    after = {row["revision"]: row["rate"]["trials"] for row in json.loads(kit.run("status", "--json"))}
    assert all(after[row["revision"]] >= row["rate"]["trials"] for row in before)
    seen = sum(row["trials"] for row in told["tried"])
    assert seen == sum(after.values())
    assert told["trials"] < seen


def test_a_budget_is_kept(kit, tmp_path):
    history = kit.about(histories.kernel_change(place(tmp_path), old=0.1, new=0.25, noise="run"))
    told = kit.bisect(history, "--budget", "3s", status=5)
    assert told["first_bad"] is None
    assert told["final"] is False


def test_git_bisect_run_with_check_commit(kit, tmp_path):
    history = kit.about(histories.kernel_change(place(tmp_path), old=0.0, new=0.5, length=48))
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(history.path), str(clone))
    git(clone, "bisect", "start", history.commits[-1], history.commits[0])
    check = ("check-commit", "--repo", clone, "--matrix", kit.home / "matrix.yaml", "--engine", "host")
    printed = git(clone, "bisect", "run", *kit.command(*check, "--rate", 0.4))
    assert f"{history.culprit} is the first bad commit" in printed
    # A typing error must end the bisection, not call every commit bad.
    wrong = subprocess.run(
        kit.command("check-commit", "--ratee", 1), cwd=clone, capture_output=True, check=False
    )
    assert wrong.returncode == 128


def test_a_commit_without_the_test_is_skipped(kit, tmp_path):
    history = kit.about(histories.born(place(tmp_path), rate=0.3))
    shutil.rmtree(kit.state, ignore_errors=True)
    check = ("check-commit", "--repo", history.path, "--engine", "host", "--rev", history.commits[0])
    assert "TEST_MISSING" in kit.complaint(*check, status=125)


def test_wrong_ends_are_refused(kit, tmp_path):
    history = kit.about(histories.never_fails(place(tmp_path)))
    common = ("bisect", "--axis", "commit", "--repo", history.path, "--engine", "host")
    swapped = ("--old", history.commits[-1], "--new", history.commits[0])
    assert "swap --old and --new" in kit.complaint(*common, *swapped, status=2)
    assert "there is no revision" in kit.complaint(*common, "--old", "nonsense", status=2)
    assert "an earlier commit" in kit.complaint(
        *common, "--old", history.commits[3], "--new", history.commits[3], status=2
    )
    versions = ("bisect", "--engine", "host", "--axis", "triton", "--old", "3.6.0", "--new", "3.8.0")
    assert "one version of everything" in kit.complaint(*versions, status=2)


def test_no_checkout_is_touched(kit, tmp_path):
    history = kit.about(histories.kernel_change(place(tmp_path), old=0.0, new=0.5, length=48))
    notes = Path(history.path, "notes-of-my-own.txt")
    notes.write_text("not committed")
    head = git(history.path, "rev-parse", "HEAD")
    told = json.loads(kit.run(*kit.arguments(history, "--json")))
    assert told["first_bad"] == history.culprit
    assert notes.read_text() == "not committed"
    assert git(history.path, "rev-parse", "HEAD") == head
    assert git(history.path, "worktree", "list").count("\n") == 0
