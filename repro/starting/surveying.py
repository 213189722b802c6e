"""What a repository holds: its top, its files, its target test, the code that the test is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from repro.errors import UsageError
from repro.starting.candidates import Candidate, candidates, is_test_file, named, tests_of
from repro.starting.layouts import BUILD_FILES, Layout, layout_of
from repro.subject import tree
from repro.subject.git import GitError, git
from repro.subject.repository import prefix_of

MOST_FILES = 100_000
STATE = ".repro"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the user says of the target test.

    Args:
        test: its name, or None to look for a backward test.
        test_file: its file, relative to the current folder or the repository, or None.
    """

    test: str | None = None
    test_file: str | None = None


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What was found.

    Args:
        root: top of the repository, absolute.
        in_git: whether git tracks it.
        ignores_state: whether git leaves the kit's own folder alone.
        target: the test that is proposed.
        test: its name, with a case where one was named or could be told.
        others: further tests that look like backward tests, best first.
        layout: the code that the target is about.
    """

    root: Path
    in_git: bool
    ignores_state: bool
    target: Candidate
    test: str
    others: tuple[Candidate, ...]
    layout: Layout


def top_of(folder: Path) -> Path:
    """Top of the project around a folder: the nearest one with build files, else git's, else itself."""
    prefix = prefix_of(folder)
    ups = [folder, *folder.parents][: prefix.count("/") + 1] if prefix else [folder]
    built = (up for up in ups if any((up / name).is_file() for name in BUILD_FILES))
    return next(built, ups[-1])


def survey(root: Path, asked: Asked) -> Survey:
    """Look for the target test below `root`, and for the code that it is about.

    Raises:
        UsageError: there is no test, or none as named; or `root` is no repository but a whole disk.
    """
    root = root.resolve()
    prefix = prefix_of(root)
    names = _names(root, in_git=prefix is not None)
    tests = _tests(root, names, asked)
    target = named(tests, asked.test) if asked.test else tests[0]
    same_test = (target.file, target.name)
    others = [test for test in tests if test.backward and (test.file, test.name) != same_test]
    return Survey(
        root=root,
        in_git=prefix is not None,
        ignores_state=prefix is None or _ignores(root, STATE),
        target=target,
        test=_with_case(target, asked.test or ""),
        others=tuple(others),
        layout=layout_of(root, names, target.file, target.name),
    )


def _ignores(root: Path, name: str) -> bool:
    try:
        git(root, "check-ignore", "--quiet", "--", f"{name}/")
    except GitError:
        return False
    return True


def _with_case(target: Candidate, asked: str) -> str:
    _, bracket, case = asked.partition("[")
    return f"{target.name}[{case}" if bracket else target.test


def _names(root: Path, *, in_git: bool) -> list[str]:
    """Files that a copy of the folder would have; with git, those that it does not ignore."""
    if in_git:
        listed: Iterable[str] = git(
            root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"
        ).split("\0")
        listed = (name for name in listed if name and not tree.is_junk(name) and (root / name).is_file())
    else:
        listed = tree.walk(root, without=root / STATE)
    names = list(islice(listed, MOST_FILES))
    if len(names) == MOST_FILES:
        raise UsageError(
            f"more than {MOST_FILES:,} files lie below this folder",
            why="`repro init` looks for tests in one repository",
            next_step="change into the repository, or name it: repro init --subject DIR",
        )
    return sorted(set(names))


def _tests(root: Path, names: list[str], asked: Asked) -> list[Candidate]:
    files = [name for name in names if is_test_file(name)]
    if asked.test_file is not None:
        files = [_file(root, names, asked.test_file)]
    found = candidates(root, files) if asked.test_file is None else tests_of(root, files[0])
    if found:
        return sorted(found, key=lambda test: -test.weight)
    looked = f"{asked.test_file} has no function whose name begins with test"
    raise UsageError(
        "there is no test here that could be the target",
        why=looked if asked.test_file else "no file named test_*.py or *_test.py has a function named test_*",
        next_step="write one test that fails now and then, or name where it is: repro init --test-file FILE",
    )


def _file(root: Path, names: list[str], given: str) -> str:
    """A test file by its path, from here or from the repository's top."""
    for path in (Path(given).resolve(), root / given):
        if path.is_relative_to(root) and path.relative_to(root).as_posix() in names:
            return path.relative_to(root).as_posix()
    raise UsageError(
        f"there is no file `{given}` in the repository",
        why="a file that git ignores, or one outside of the repository, is no part of the subject",
        next_step="correct --test-file",
    )
