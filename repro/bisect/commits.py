"""Commits as candidates: each with a read-only copy of its own, its own import layout and its own test."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from repro import ui
from repro.bisect.lines import Candidate
from repro.bisect.names import base_name
from repro.cells import Cell
from repro.config import SubjectSpec
from repro.run import Target
from repro.subject import Commit, Repository, Subject, resolve_commit, test_names
from repro.subject.naming import name_in_commits


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """How to come by the code of a commit.

    Args:
        spec: where the test is.
        repository: that holds the commits.
        state: the kit's folder; copies go below it.
        test_file: instead of the spec's, or None.
        tests_from: full id of the commit whose tests run everywhere, or None for each commit's own.
        earlier: names that the test had, each `NAME` or `FILE.py::NAME`, globs allowed in the name.
    """

    spec: SubjectSpec
    repository: Repository
    state: Path
    test_file: str | None = None
    tests_from: str | None = None
    earlier: Sequence[str] = ()

    def subject(self, commit: str) -> Subject:
        """The code of a commit, copied unless it is there.

        Raises:
            UsageError: it has no part of the subject, or a link that leads outside.
        """
        return resolve_commit(
            self.spec,
            self.repository,
            commit,
            state=self.state,
            test_file=self._file(commit),
            tests_from=self.tests_from,
        )

    def missing(self, commit: str) -> str:
        """Why a commit has no such test, as far as its files alone tell; "" where it may have it."""
        file, own = name_in_commits(self._file(commit), self.spec, self.repository)
        if self.tests_from is not None or own is not None:
            return ""
        source = test_names(self.repository, commit, file)
        if source is None:
            return f"no such file: {file}"
        wanted = [base_name(name).split("::")[-1] for name in (self.spec.test, *self.names)]
        known = {name.split("::")[-1] for name in source.names}
        globs = any(set(name) & set("*?") for name in wanted)
        if globs or not source.certain or known & set(wanted):
            return ""
        return f"{file} has no test {base_name(self.spec.test)!r}"

    @property
    def names(self) -> list[str]:
        """The earlier names without files."""
        return [name.rpartition(".py::")[2] for name in self.earlier]

    def _file(self, commit: str) -> str:
        """The test file at a commit: the first one named that is there, else the first."""
        given = self.test_file or self.spec.test_file
        others = [f"{name.rpartition('.py::')[0]}.py" for name in self.earlier if ".py::" in name]
        there = (file for file in (given, *others) if test_names(self.repository, commit, file))
        return next(there, given) if others else given


@dataclass(kw_only=True)
class CommitLine:
    """One cell over the commits of a history; see `repro.bisect.lines.Line`.

    Args:
        commits: oldest first.
        cell: where they run.
        checkout: how to come by their code.
        earlier: by commit, revision and test's name of the subject, as far as earlier runs know them.
    """

    commits: Sequence[Commit]
    cell: Cell
    checkout: Checkout
    earlier: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    axis: str = "commit"
    _subjects: dict[int, Subject] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.candidates: Sequence[Candidate] = [
            Candidate(name=commit.id, label=label(commit), cell=self.cell, merge=commit.is_merge)
            for commit in self.commits
        ]

    @property
    def origin(self) -> str:
        """The repository, fit to be shown."""
        return self.checkout.repository.origin

    @property
    def test(self) -> str:
        """Name of the target test."""
        return self.checkout.spec.test

    def target(self, index: int) -> Target:
        """See `Line.target`."""
        with self._lock:
            if index not in self._subjects:
                self._subjects[index] = self.checkout.subject(self.commits[index].id)
        return Target(cell=self.cell, subject=self._subjects[index])

    def series(self, index: int) -> tuple[str, str] | None:
        """See `Line.series`."""
        return self.earlier.get(self.commits[index].id)

    def missing(self, index: int) -> str:
        """See `Line.missing`."""
        return self.checkout.missing(self.commits[index].id)

    def inside(self, commits: Sequence[Commit]) -> CommitLine:
        """The same over other commits of the repository."""
        return replace(self, commits=commits, _subjects={}, _lock=threading.Lock())


def label(commit: Commit) -> str:
    """A commit as a person reads it."""
    return f"{commit.short[:10]} {ui.one_line(commit.subject, 60)}".rstrip()
