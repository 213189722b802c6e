"""What is searched: an ordered list of candidates, each a version or a commit, oldest first.

To the search they are the same: a candidate is a cell and a subject. Only here does it matter which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from repro.cells import Cell
from repro.run import Target
from repro.subject import Subject


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One place where the failure rate may change.

    Args:
        name: what a program reads: a version, or a full commit id.
        label: what a person reads: a version, or an abbreviated id and the commit's first line.
        cell: where it runs.
        merge: whether it is a merge of several lines of commits.
    """

    name: str
    label: str
    cell: Cell
    merge: bool = False


class Line(Protocol):
    """Candidates in order, and how to come by the code of each."""

    axis: str
    candidates: Sequence[Candidate]

    @property
    def test(self) -> str:
        """Name of the target test."""

    @property
    def origin(self) -> str:
        """Where the code under test is from, fit to be shown."""

    def target(self, index: int) -> Target:
        """What is tried at a candidate; the code is copied where need be. May be called by threads.

        Raises:
            UsageError: the code of this candidate cannot be had.
        """

    def series(self, index: int) -> tuple[str, str] | None:
        """The subject's revision and its test's name, as far as known without copying anything, or None."""

    def missing(self, index: int) -> str:
        """Why a candidate has no such test, as far as its files alone tell; "" where it may have it."""


@dataclass(kw_only=True)
class VersionLine:
    """One subject over the versions of an axis.

    Args:
        axis: `release`, `triton`, `torch` or `ptxas`.
        candidates: oldest first.
        subject: code under test, the same everywhere.
        left_out: versions between the ends that cannot exist in these cells, each with the reason.
    """

    axis: str
    candidates: Sequence[Candidate]
    subject: Subject
    left_out: Sequence[tuple[str, str]] = ()

    @property
    def origin(self) -> str:
        """See `Line.origin`."""
        return self.subject.origin

    @property
    def test(self) -> str:
        """Name of the target test."""
        return self.subject.test

    def target(self, index: int) -> Target:
        """See `Line.target`."""
        return Target(cell=self.candidates[index].cell, subject=self.subject)

    def series(self, index: int) -> tuple[str, str] | None:
        """See `Line.series`."""
        return self.subject.revision, self.subject.test

    def missing(self, index: int) -> str:
        """See `Line.missing`: the test was found when the subject was copied."""
        return ""
