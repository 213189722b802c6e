"""Code under test: which code, which of its tests, and a read-only copy of it that trials see."""

from repro.subject.history import (
    Commit,
    Repository,
    TestSource,
    Touched,
    commits_between,
    merged_commits,
    open_repository,
    test_names,
    touched,
)
from repro.subject.location import override
from repro.subject.repository import export, resolve_revision
from repro.subject.resolving import Subject, resolve, resolve_commit

__all__ = [
    "Commit",
    "Repository",
    "Subject",
    "TestSource",
    "Touched",
    "commits_between",
    "export",
    "merged_commits",
    "open_repository",
    "override",
    "resolve",
    "resolve_commit",
    "resolve_revision",
    "test_names",
    "touched",
]
