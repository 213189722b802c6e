"""The command line's say in which subject is meant."""

from dataclasses import replace
from pathlib import Path

import pytest

from repro.config import SubjectSpec
from repro.errors import UsageError
from repro.subject import override

SPEC = SubjectSpec(
    base=Path("/"), path="/kit", files=("a",), python_path=("src",), test_file="t.py", test="test_a"
)


@pytest.mark.parametrize(
    ("location", "url", "rev"),
    [
        ("https://example.org/a/b.git", "https://example.org/a/b.git", None),
        ("https://example.org/a/b@feature/x", "https://example.org/a/b", "feature/x"),
        ("https://me:key@example.org/a/b@v1", "https://me:key@example.org/a/b", "v1"),
        ("git@example.org:a/b.git@v1", "git@example.org:a/b.git", "v1"),
        ("git@example.org:a/b.git", "git@example.org:a/b.git", None),
    ],
)
def test_a_url_on_the_command_line(location: str, url: str, rev: str | None):
    assert override(SPEC, location=location) == replace(
        SPEC, path=None, git=url, rev=rev, files=(), python_path=()
    )


def test_a_folder_on_the_command_line(tmp_path, monkeypatch):
    (tmp_path / "a@b").mkdir()
    monkeypatch.chdir(tmp_path)
    for location, rev in (("a@b", None), ("a@b@v1", "v1"), ("./a@b@x/y@z", "x/y@z")):
        moved = override(SPEC, location=location)
        assert (moved.path, moved.rev, moved.files) == (str(tmp_path / "a@b"), rev, ())


def test_another_revision_of_the_same_folder_keeps_its_layout(tmp_path):
    spec = replace(SPEC, path=str(tmp_path))
    assert override(spec, location=f"{tmp_path}@v1") == replace(spec, rev="v1")


def test_a_location_that_is_neither(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        override(SPEC, location="nowhere@v1")
    assert caught.value.what == "there is no folder `nowhere@v1`"
    assert (
        caught.value.why
        == "a subject is a folder or a git URL, with @REV after it for a branch, tag or commit"
    )
    assert caught.value.next_step == "check the path, or give a URL such as https://HOST/OWNER/NAME@main"


def test_a_test_on_the_command_line():
    assert override(SPEC, test="test_b[x::y]") == replace(SPEC, test="test_b[x::y]")
    assert override(SPEC, test="u.py::TestA::test_b") == replace(SPEC, test_file="u.py", test="TestA::test_b")
