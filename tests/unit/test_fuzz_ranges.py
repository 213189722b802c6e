"""Names of commits, repositories and tests, whatever they are: found, or refused in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from subject_folders import commit, committed, git

from repro.config import SubjectSpec, load
from repro.errors import ReproError, UsageError
from repro.subject import Repository, commits_between, open_repository, override, resolve

HOSTILE = [
    "--upload-pack=touch pwned",
    "-h",
    "--output=pwned",
    "HEAD --output=pwned",
    "HEAD; touch pwned",
    "$(touch pwned)",
    "HEAD\x1b[2J",
    "HEAD\n--all",
    "\ud800",
    "HEAD:a",
    "a..b",
    "HEAD^{tree}",
    "@{-1}",
    ":/",
    "^HEAD",
    "",
    "~nobody-of-that-name",
    "x" * 300,
    "x" * 1001,
]
PARTS = st.sampled_from(
    ["HEAD", "main", "~", "^", "@{", "}", "..", "...", ":", "-", "--", "/", "v1", "0", "\x00", " "]
)
REVISIONS = st.lists(PARTS | st.text(max_size=3), max_size=5).map("".join) | st.sampled_from(HOSTILE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    (folder / "test_a.py").write_text("def test_a():\n    assert True\n")
    committed(folder)
    for number in range(3):
        (folder / "test_a.py").write_text(f"def test_a():\n    assert {number}\n")
        commit(folder, f"c{number}")
    return folder


@pytest.fixture(scope="module")
def opened(folder, tmp_path_factory) -> Repository:
    spec = SubjectSpec(base=folder, path=".", test_file="test_a.py", test="test_a")
    return open_repository(spec, tmp_path_factory.mktemp("state"))


@settings(max_examples=60, deadline=None)
@given(old=REVISIONS, new=REVISIONS)
def test_any_range_is_a_line_of_commits_or_refused(opened, old, new):
    refused_or(lambda: commits_between(opened, old, new), opened)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name[:20]))
def test_hostile_names_of_revisions(opened, name):
    for old, new in ((name, "HEAD"), ("HEAD", name)):
        refused_or(lambda old=old, new=new: commits_between(opened, old, new), opened)


def refused_or(ask, opened):
    line, error = [], UsageError("none")
    try:
        line = ask()
    except ReproError as raised:
        error = raised
    assert isinstance(error, UsageError)
    assert len(error.what) < 1000
    assert "\x1b" not in error.what
    assert all(len(each.id) == 40 for each in line)
    assert not list(opened.path.rglob("*pwned*"))


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c touch% pwned",
        "ext::sh -c 'touch pwned'",
        "--upload-pack=touch pwned",
        "-u./x",
        "fd::17/foo",
        "ssh://-oProxyCommand=touch pwned/x",
        "file:///nowhere/at/all",
        "https://nobody@localhost:1/x.git",
    ],
    ids=lambda address: address[:24],
)
def test_hostile_addresses_of_repositories(tmp_path, monkeypatch, address):
    """No command of theirs runs: git is given few transports, and no address in the place of an option."""
    monkeypatch.chdir(tmp_path)
    spec = SubjectSpec(base=tmp_path, path=None, git=address, test_file="test_a.py", test="test_a")
    with pytest.raises(ReproError) as caught:
        resolve(spec, state=tmp_path / "state")
    assert len(caught.value.what) < 2000
    assert not list(tmp_path.rglob("pwned"))


@settings(max_examples=60, deadline=None)
@given(location=st.text(max_size=12) | st.sampled_from(HOSTILE))
def test_any_location_is_a_place_or_refused(tmp_path_factory, location):
    base = SubjectSpec(base=tmp_path_factory.getbasetemp(), path=".", test_file="t.py", test="a")
    said = ""
    try:
        override(base, location=location)
    except UsageError as error:
        said = error.what
    assert len(said) < 1000


@pytest.mark.parametrize("length", [5_000, 200_000])
def test_names_longer_than_a_path_or_a_command_line_may_be(opened, tmp_path, length):
    name = "x" * length
    with pytest.raises(UsageError):
        commits_between(opened, name, None)
    with pytest.raises(UsageError):
        override(SubjectSpec(base=tmp_path, path=".", test_file="t.py", test="a"), location=name)
    (tmp_path / "matrix.yaml").write_text(f"subject: {{git: {name}, test_file: t.py, test: a}}\n")
    with pytest.raises(UsageError, match=f"`git` has {length} characters"):
        load(tmp_path / "matrix.yaml")


def test_a_branch_named_as_an_option_stays_a_name(folder, tmp_path):
    """A stranger's repository may hold such a branch; `git branch` makes none."""
    head = git(folder, "rev-parse", "HEAD")
    git(folder, "update-ref", "refs/heads/--output=pwned", head)
    spec = SubjectSpec(base=folder, path=None, git=str(folder), test_file="test_a.py", test="test_a")
    assert resolve(spec, state=tmp_path / "state").commit == head
    with pytest.raises(UsageError):
        resolve(replace(spec, rev="--output=pwned"), state=tmp_path / "state")
    assert resolve(replace(spec, rev="refs/heads/--output=pwned"), state=tmp_path / "state").commit == head
    assert not list(tmp_path.rglob("*pwned*.pack"))
    assert not list(folder.glob("*pwned*"))
