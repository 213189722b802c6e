"""Where a copy's code is imported from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_SOURCES = ("src", "python", "lib")
_NO_CODE = frozenset({"setup.py", "conftest.py", "noxfile.py", "test", "tests", "docs", "benchmarks"})


def find_python_path(root: Path) -> tuple[str, ...]:
    """The folder that holds the packages, relative to `root`: `src` or the like, or else `root` itself."""
    if _has_code(root / "src"):
        return ("src",)
    if _has_code(root):
        return (".",)
    return next(((name,) for name in _SOURCES if _has_code(root / name)), (".",))


def fitting_python_path(root: Path, given: Sequence[str]) -> tuple[str, ...]:
    """The given folders, with what is found in place of those that this copy does not have."""
    found = find_python_path(root)
    parts = [part for name in given for part in ((name,) if (root / name).is_dir() else found)]
    return tuple(dict.fromkeys(parts or found))


def _has_code(folder: Path) -> bool:
    """Whether packages or modules lie in it; a script that builds or a folder of tests is neither."""
    modules = (path.name for path in folder.glob("*.py"))
    packages = (path.parent.name for path in folder.glob("*/__init__.py"))
    return any(name not in _NO_CODE for name in (*modules, *packages))
