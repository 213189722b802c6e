"""Which file a test file's name means, the same for all commits of a history."""

from __future__ import annotations

import os
from pathlib import Path

from repro.config import SubjectSpec
from repro.errors import UsageError
from repro.subject.commits import Repository
from repro.subject.git import GitError, git
from repro.subject.location import folder_of


def name_in_commits(given: str, spec: SubjectSpec, repository: Repository) -> tuple[str, Path | None]:
    """The file's name relative to the subject; and the user's own file outside it, where that is meant.

    A file outside is meant where the newest commit has no file of that name.

    Args:
        given: path relative to the subject or to the current folder, or absolute.
        spec: of the subject.
        repository: opened for it.
    """
    own = Path(given).expanduser().resolve()
    folder, name = folder_of(spec), os.path.normpath(given)
    if not name.startswith(("/", "..")) and has_file(repository, repository.rev, name):
        return name, None
    if folder is not None and own.is_relative_to(folder) and (own.is_file() or Path(given).is_absolute()):
        return own.relative_to(folder).as_posix(), None
    return (own.name, own) if own.is_file() else (name, None)


def check_tests_from(repository: Repository, commit: str, name: str, own: Path | None) -> None:
    """Refuse a commit that the test cannot be taken from.

    Raises:
        UsageError: when it has no such file, or the file is outside the subject.
    """
    if own is not None:
        raise UsageError(
            f"`{name}` is no part of the subject, so no commit has it",
            why="a file of one's own is used for every commit anyway",
            next_step="leave --tests-from out",
        )
    if not has_file(repository, commit, name):
        raise UsageError(
            f"commit {commit[:12]} has no test file `{name}`",
            why="--tests-from takes the tests of one commit to all others",
            next_step="name a commit that has the test, or correct --test-file",
        )


def has_file(repository: Repository, commit: str, name: str) -> bool:
    """Whether a commit has a file of that name, relative to the subject."""
    try:
        kind = git(repository.path, "cat-file", "-t", f"{commit}:{repository.prefix}{name}")
    except GitError:
        return False
    return kind.strip() == "blob"
