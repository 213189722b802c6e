"""Generated histories are what they say: their rates, their culprits, and what the kit reads of them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import histories
import pytest
from histories import History
from operator_history import operator_change

from repro.config import SubjectSpec
from repro.subject import (
    Repository,
    commits_between,
    history,
    merged_commits,
    open_repository,
    resolve_commit,
    touched,
)

pytestmark = pytest.mark.slow

TRIALS = 400
COUNT = """\
import importlib, random, sys
sys.path[:0] = sys.argv[3:]
test = getattr(importlib.import_module(sys.argv[1]), "test_backward")
failed = 0
for seed in range(int(sys.argv[2])):
    random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    try:
        test(*arguments)
    except AssertionError:
        failed += 1
print(failed)
"""


def opened(told: History, state: Path) -> tuple[SubjectSpec, Repository]:
    spec = SubjectSpec(base=told.path, path=".", test_file=told.test_file, test=told.test)
    return spec, open_repository(spec, state)


@pytest.fixture
def failures(tmp_path: Path) -> Callable[..., int]:
    """How many of so many seeds fail at a commit, counted in a process without the kit."""

    def failures(told: History, commit: str, *, trials: int = TRIALS, parameters: int = 0) -> int:
        spec, repository = opened(told, tmp_path / "state")
        subject = resolve_commit(spec, repository, commit, state=tmp_path / "state")
        file = subject.root / subject.test_file
        path = [str(file.parent), *(str(subject.root / part) for part in subject.python_path)]
        program = COUNT.replace("*arguments", ", ".join(["None"] * parameters))
        command = [sys.executable, "-c", program, file.stem, str(trials), *path]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        return int(done.stdout) if done.returncode == 0 else -1

    return failures


def near(rate: float, trials: int = TRIALS) -> object:
    """Counts within four standard deviations of the expected one."""
    spread = 4 * (trials * rate * (1 - rate)) ** 0.5
    return pytest.approx(trials * rate, abs=spread)


BUILDERS: dict[str, Callable[[Path], History]] = {
    "kernel_change": lambda path: histories.kernel_change(path, old=0.02, new=0.25),
    "input_change": lambda path: histories.input_change(path, old=0.0, new=0.3),
    "born": lambda path: histories.born(path, rate=0.3, renamed=True),
    "broken_commits": lambda path: histories.broken_commits(path, old=0, new=0.3, hiding=True),
    "merges": lambda path: histories.merges(path, old=0.02, new=0.25),
    "reverted": lambda path: histories.reverted(path, rate=0.3),
    "fixed": lambda path: histories.fixed(path, rate=0.3),
    "unchanged": lambda path: histories.unchanged(path, rate=0.1),
    "never_fails": histories.never_fails,
    "layout": lambda path: histories.layout(path, old=0.02, new=0.3),
    "operator_change": lambda path: operator_change(path, old=0.0, new=0.3),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_a_history_is_read_as_it_is_told(name, tmp_path):
    told = BUILDERS[name](tmp_path / "subject")
    _, repository = opened(told, tmp_path / "state")
    assert [commit.id for commit in commits_between(repository, None, None)] == told.commits
    whole = subprocess.run(
        ["git", "-C", told.path, "rev-list", "--all"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(whole) >= 60
    assert {told.culprit, told.fix, told.merge, *told.broken} - {None} <= {*whole}


def test_the_same_history_has_the_same_commits(tmp_path):
    one, other = (histories.unchanged(tmp_path / name, rate=0.1) for name in "ab")
    assert one.commits == other.commits


@pytest.mark.parametrize("build", [histories.kernel_change, histories.input_change])
@pytest.mark.parametrize(("old", "new"), [(0, 0.3), (0.02, 0.25), (0.2, 0.8)])
def test_the_rate_changes_at_the_culprit(tmp_path, failures, build, old, new):
    told = build(tmp_path / "subject", old=old, new=new)
    at = told.commits.index(told.culprit)
    before = [failures(told, told.commits[index]) for index in (0, at - 1)]
    after = [failures(told, told.commits[index]) for index in (at, -1)]
    assert before == [near(old)] * 2
    assert after == [near(new)] * 2
    assert len({*before}) == len({*after}) == 1, "innocent commits change no seed's outcome"


def test_noise_of_the_run_does_not_replay(tmp_path, failures):
    told = histories.unchanged(tmp_path / "subject", rate=0.5, noise="run")
    counts = [failures(told, told.commits[-1]) for _ in range(4)]
    assert counts == [near(0.5)] * 4
    assert len(set(counts)) > 1


def test_a_test_is_born_and_renamed(tmp_path, failures):
    told = histories.born(tmp_path / "subject", rate=0.3, renamed=True)
    _, repository = opened(told, tmp_path / "state")
    birth = told.commits.index(told.culprit)
    assert dict(told.names)[birth] == "test_backward[float32]"
    assert told.test == "test_backward[float32-border-False]"
    known = [history.test_names(repository, commit, told.test_file).names for commit in told.commits]
    assert ["test_backward" in names for names in known] == [index >= birth for index in range(len(known))]
    for parameters, (index, _) in enumerate(told.names, 1):
        assert failures(told, told.commits[index], parameters=parameters) == near(0.3)


def test_a_test_is_born_with_its_file(tmp_path):
    told = histories.born(tmp_path / "subject", rate=0.3, with_file=True)
    _, repository = opened(told, tmp_path / "state")
    birth = told.commits.index(told.culprit)
    assert history.test_names(repository, told.commits[birth - 1], told.test_file) is None
    assert "test_backward" in history.test_names(repository, told.culprit, told.test_file).names


@pytest.mark.parametrize("hiding", [True, False])
def test_broken_commits_cannot_be_imported(tmp_path, failures, hiding):
    told = histories.broken_commits(tmp_path / "subject", old=0, new=0.3, hiding=hiding)
    assert (told.culprit in told.broken) == hiding
    first, last = (told.commits.index(told.broken[index]) for index in (0, -1))
    assert [failures(told, told.commits[index], trials=1) for index in (first, last)] == [-1, -1]
    assert failures(told, told.commits[first - 1]) == 0
    assert failures(told, told.commits[last + 1]) == near(0.3 if hiding else 0)
    assert failures(told, told.commits[-1]) == near(0.3)


def test_a_culprit_inside_a_merge(tmp_path, failures):
    told = histories.merges(tmp_path / "subject", old=0.02, new=0.25)
    _, repository = opened(told, tmp_path / "state")
    line = commits_between(repository, None, None)
    assert sum(commit.is_merge for commit in line) == 13
    merge = next(commit for commit in line if commit.id == told.merge)
    [branch] = merged_commits(repository, merge, told.commits[0])
    ids = [commit.id for commit in branch]
    assert len(ids) == 5
    assert told.culprit == ids[3]
    assert failures(told, merge.parents[0]) == failures(told, ids[2]) == near(0.02)
    assert failures(told, told.culprit) == failures(told, merge.id) == near(0.25)
    assert failures(told, told.commits[-1]) == near(0.25)


def test_a_merge_of_two_good_parents_is_bad(tmp_path, failures):
    told = histories.merges(tmp_path / "subject", old=0, new=0.25, at_merge=True)
    _, repository = opened(told, tmp_path / "state")
    [merge] = [commit for commit in commits_between(repository, None, None) if commit.id == told.culprit]
    assert [failures(told, parent) for parent in merge.parents] == [0, 0]
    assert failures(told, merge.id) == near(0.25)
    assert failures(told, told.commits[-1]) == near(0.25)


def test_a_failure_that_was_reverted_and_one_that_was_fixed(tmp_path, failures):
    reverted = histories.reverted(tmp_path / "reverted", rate=0.3)
    rates = [failures(reverted, commit) for commit in (reverted.commits[0], reverted.culprit, reverted.fix)]
    assert rates == [0, near(0.3), 0]
    fixed = histories.fixed(tmp_path / "fixed", rate=0.3)
    before = fixed.commits[fixed.commits.index(fixed.fix) - 1]
    rates = [failures(fixed, commit) for commit in (fixed.commits[0], before, fixed.fix)]
    assert rates == [near(0.3), near(0.3), 0]


def test_a_history_in_which_nothing_changes(tmp_path, failures):
    same = histories.unchanged(tmp_path / "same", rate=0.1)
    assert [failures(same, same.commits[index]) for index in (0, 30, -1)] == [near(0.1)] * 3
    never = histories.never_fails(tmp_path / "never")
    assert [failures(never, never.commits[index]) for index in (0, 30, -1)] == [0] * 3


def test_a_package_that_moves_and_asks_for_its_version(tmp_path, failures):
    told = histories.layout(tmp_path / "subject", old=0.02, new=0.3)
    at, moved = told.commits.index(told.culprit), len(told.commits) // 2
    assert moved < at
    for index in (0, moved - 1, moved, at - 1):
        assert failures(told, told.commits[index]) == near(0.02)
    assert failures(told, told.culprit) == near(0.3)


@pytest.mark.parametrize("noise", ["inputs", "run"])
def test_the_operator_begins_to_fail_at_the_culprit(tmp_path, failures, noise):
    told = operator_change(tmp_path / "subject", old=0.0, new=0.3, noise=noise)
    at = told.commits.index(told.culprit)
    assert failures(told, told.commits[at - 1], trials=100) == 0
    assert failures(told, told.culprit, trials=100) == near(0.3, 100)


def test_what_the_culprits_touched(tmp_path):
    for build, words in (
        (histories.kernel_change, "the kernel"),
        (histories.input_change, "the test"),
    ):
        told = build(tmp_path / words, old=0, new=0.3)
        _, repository = opened(told, tmp_path / "state")
        [commit] = [one for one in commits_between(repository, None, None) if one.id == told.culprit]
        assert touched(repository, commit, test_file=told.test_file, python_path=["."]).words == words
