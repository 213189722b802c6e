"""What matrix.yaml says, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.specifiers import SpecifierSet

Env = tuple[tuple[str, str], ...]
"""Environment variables, sorted by name."""


@dataclass(frozen=True, kw_only=True)
class Signature:
    """What the failure looked for is recognised by.

    Args:
        exception: name of the exception's type; any other failure is another failure.
    """

    exception: str = "AssertionError"


@dataclass(frozen=True, kw_only=True)
class SubjectSpec:
    """Where the code under test is, and which of its tests is the target.

    Args:
        base: folder that relative paths start from: the one that holds matrix.yaml.
        path: folder with the code, or None where `git` is given.
        git: URL of a git repository, or None.
        rev: branch, tag or commit; None for the folder as it is, or the repository's default branch.
        files: parts of the folder that are the subject; empty for all of it.
        python_path: folders put on PYTHONPATH, relative to the subject; empty to find them.
        test_file: file that holds the test, relative to the subject.
        test: pytest's name of the test inside the file, such as `test_a[float32]` or `TestA::test_b`.
        requirements: pip requirements beside torch, triton and pytest.
        signature: what the failure looked for is recognised by.
        adapter: file that knows the operator under test (docs/adapters.md), or None.
    """

    base: Path
    path: str | None = None
    git: str | None = None
    rev: str | None = None
    files: tuple[str, ...] = ()
    python_path: tuple[str, ...] = ()
    test_file: str = ""
    test: str = ""
    requirements: tuple[str, ...] = ()
    signature: Signature = Signature()
    adapter: str | None = None


@dataclass(frozen=True, kw_only=True)
class Trials:
    """How often the test runs in a cell.

    Args:
        count: trials a cell, at most.
        confidence: of the intervals, between 0 and 1.
        half_width: a cell is done early once its interval reaches no further than this from its middle;
            None to run all trials.
        block: trials that share one process.
    """

    count: int = 200
    confidence: float = 0.95
    half_width: float | None = None
    block: int = 50


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on one trial process.

    Args:
        memory: bytes; None for no limit.
        pids: processes and threads.
        trial_timeout: seconds a trial may take before its process is killed from outside.
        startup_timeout: seconds until the first trial must have begun.
        build_timeout: seconds an image or environment may take to build.
    """

    memory: int | None = 8 * 2**30
    pids: int = 512
    trial_timeout: float = 120.0
    startup_timeout: float = 300.0
    build_timeout: float = 1800.0


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One value that an axis may take, as it was written.

    Args:
        text: a version, a name such as `pinned` or `cu126`, or a version range.
        range: the parsed range, or None for one value.
    """

    text: str
    range: SpecifierSet | None = None


@dataclass(frozen=True, kw_only=True)
class Axes:
    """The values of every axis; None where a rule leaves the axis alone."""

    python: tuple[Choice, ...] | None = None
    torch: tuple[Choice, ...] | None = None
    triton: tuple[Choice, ...] | None = None
    cuda: tuple[Choice, ...] | None = None
    ptxas: tuple[Choice, ...] | None = None
    env: tuple[Env, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Cells to add or to leave out.

    Args:
        axes: what the rule is about.
        reason: why; shown with every cell that the rule touches.
        line: where it stands in matrix.yaml.
    """

    axes: Axes
    reason: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One matrix: every combination of its axes, less `exclude`, and then `include`.

    Args:
        name: key in matrix.yaml.
        axes: every axis has values.
        include: further cells.
        exclude: combinations to leave out.
        trials: the file's trials, with what the profile says of its own.
        line: where it stands in matrix.yaml.
    """

    name: str
    axes: Axes
    include: tuple[Rule, ...] = ()
    exclude: tuple[Rule, ...] = ()
    trials: Trials = Trials()
    line: int = 0

    @property
    def on_gpu(self) -> bool:
        """Whether any of its cells needs a GPU."""
        every = [self.axes, *(rule.axes for rule in self.include)]
        return any(choice.text != "cpu" for axes in every for choice in axes.cuda or ())


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A whole matrix.yaml.

    Args:
        path: the file.
        subject: code under test and its target test.
        trials: how often, where a profile does not say otherwise.
        limits: on each trial process and build.
        profiles: by name, in the file's order; never empty.
    """

    path: Path
    subject: SubjectSpec
    trials: Trials = Trials()
    limits: Limits = Limits()
    profiles: Mapping[str, Profile] = field(default_factory=dict)

    def default_profile(self, *, gpu: bool) -> Profile:
        """The first profile that is made for a machine with, or without, a GPU; else the first one."""
        fitting = [profile for profile in self.profiles.values() if profile.on_gpu == gpu]
        return (fitting or list(self.profiles.values()))[0]
