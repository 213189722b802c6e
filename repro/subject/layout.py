"""Where a copy's code is imported from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from repro.subject.declared import package_folders, read_build_files

_SOURCES = ("src", "python", "lib")
NO_PACKAGES = frozenset(
    {"setup", "conftest", "noxfile", "test", "tests", "docs", "doc", "benchmarks", "examples"}
)
"""Names of modules and folders at the top of a repository that are no part of its package."""


def find_python_path(root: Path) -> tuple[str, ...]:
    """The folders that hold the packages, relative to `root`: as the build files say, or as it looks."""
    declared = [folder for folder in package_folders(read_build_files(root)) if (root / folder).is_dir()]
    if declared:
        return tuple(declared)
    if top_level(root / "src"):
        return ("src",)
    if top_level(root):
        return (".",)
    return next(((name,) for name in _SOURCES if top_level(root / name)), (".",))


def fitting_python_path(root: Path, given: Sequence[str]) -> tuple[str, ...]:
    """The given folders, with what is found in place of those that this copy does not have."""
    if given and all((root / name).is_dir() for name in given):
        return tuple(given)
    found = find_python_path(root)
    parts = [part for name in given for part in ((name,) if (root / name).is_dir() else found)]
    return tuple(dict.fromkeys(parts or found))


def top_level(folder: Path) -> list[str]:
    """Names that can be imported from a folder."""
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    return sorted((packages | {path.stem for path in folder.glob("*.py")}) - NO_PACKAGES)
