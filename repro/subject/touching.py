"""What a commit changed: the test, the kernel, other code, or nothing that runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from repro.subject import tree
from repro.subject.commits import Commit, Repository
from repro.subject.git import git
from repro.subject.repository import contents
from repro.subject.targets import is_test_part

_KERNEL = re.compile(
    rb"\btriton\.jit\b|^[ \t]*@(?:\w+\.)*jit\b"
    rb"|^[ \t]*(?:import[ \t]+triton\.language|from[ \t]+triton\.language)\b"
    rb"|^[ \t]*from[ \t]+triton[ \t]+import\b.*\blanguage\b",
    re.MULTILINE,
)
_NATIVE = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp", ".inl", ".ptx"})
_BUILD = frozenset({"setup.py", "noxfile.py", "tasks.py"})
_BESIDE = frozenset({"doc", "docs", "benchmark", "benchmarks", "example", "examples"})


@dataclass(frozen=True, kw_only=True)
class Touched:
    """The files that a commit changed, each in one of four groups; paths start at the repository's top.

    Args:
        test: the test file, what lies in its folder of tests, and every conftest.py.
        kernel: Python files with Triton kernels, before or after, and sources in C++ or CUDA.
        code: other Python files that can be imported.
        other: the rest: documentation, build metadata, data.
    """

    test: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    other: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What was changed, as the object of a sentence, such as `the test and the kernel`."""
        named = [
            words
            for files, words in (
                (self.test, "the test"),
                (self.kernel, "the kernel"),
                (self.code, "other code" if self.kernel else "code that holds no kernel"),
            )
            if files
        ]
        if not named:
            return "neither the test nor any code" if self.other else "no file"
        return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def touched(repository: Repository, commit: Commit, *, test_file: str, python_path: Sequence[str]) -> Touched:
    """What a commit changed against its first parent; all of its files for a root commit.

    Args:
        repository: that holds the commit.
        commit: whose changes.
        test_file: relative to the subject.
        python_path: folders that code is imported from, relative to the subject.
    """
    changes = _changes(repository, commit)
    kernels = _kernels(repository, changes)
    groups: dict[str, list[str]] = {"test": [], "kernel": [], "code": [], "other": []}
    for path in changes:
        inside = path.startswith(repository.prefix)
        name = path.removeprefix(repository.prefix)
        if (inside and is_test_part(name, test_file)) or PurePosixPath(name).name == "conftest.py":
            groups["test"].append(path)
        elif path in kernels:
            groups["kernel"].append(path)
        elif inside and _importable(name, python_path):
            groups["code"].append(path)
        else:
            groups["other"].append(path)
    return Touched(**{group: tuple(paths) for group, paths in groups.items()})


def _changes(repository: Repository, commit: Commit) -> dict[str, list[tree.Entry]]:
    """By path, its content before and after, as far as there is one."""
    sides = [commit.parents[0], commit.id] if commit.parents else [commit.id]
    fields = git(
        repository.path, "diff-tree", "-r", "-z", "--root", "--no-commit-id", "--no-renames", *sides, "--"
    ).split("\0")
    changes = {}
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old, new, _ = facts.removeprefix(":").split()
        changes[path] = [
            tree.Entry(path=path, mode=mode, blob=blob)
            for mode, blob in ((old_mode, old), (new_mode, new))
            if mode in (tree.FILE, tree.EXECUTABLE)
        ]
    return changes


def _kernels(repository: Repository, changes: dict[str, list[tree.Entry]]) -> set[str]:
    native = {path for path in changes if PurePosixPath(path).suffix in _NATIVE}
    python = [entry for path, sides in changes.items() if path.endswith(".py") for entry in sides]
    return native | {entry.path for entry, text in contents(repository.path, python) if _KERNEL.search(text)}


def _importable(name: str, python_path: Sequence[str]) -> bool:
    """Whether Python could import the file; scripts that build, document or measure are not meant."""
    path = PurePosixPath(name)
    if path.suffix not in (".py", ".pyx") or (len(path.parts) == 1 and path.name in _BUILD):
        return False
    return tree.within(name, python_path or ["."]) and path.parts[0] not in _BESIDE
