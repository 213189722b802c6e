"""Version files that a build would write and git does not hold, without which imports fail."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.version import Version

from repro.subject.declared import BuildFiles, at, is_inside
from repro.subject.parsing import parse

_MODULES = frozenset({"_version", "version", "__version__", "_version_info", "_generated_version"})
_MENTIONED = re.compile(rb"\b(?:from|import)\b[^\n]*version")
_TEXTS = ("__version__", "version", "VERSION", "full_version", "short_version")
_NUMBERS = ("__version_tuple__", "version_tuple", "version_info")
_COMMITS = ("__commit_id__", "commit_id", "git_version", "git_commit", "git_hash", "git_revision")
_KNOWN = frozenset((*_TEXTS, *_NUMBERS, *_COMMITS, "*"))


def version_files(
    files: BuildFiles, root: Path, folders: Sequence[str], version: str
) -> Iterator[tuple[str, str]]:
    """Paths of the version files that are missing, relative to `root`, and what to write into each.

    Those that build backends are told to write (setuptools-scm, hatch, pdm), and modules that are imported
    by a name such as `_version` and for nothing but a version.

    Args:
        files: the build files in `root`.
        root: the copy.
        folders: that packages lie in, relative to `root`.
        version: of the package.
    """
    for path, template in _configured(files, folders):
        if is_inside(path) and not (root / path).exists() and (root / path).parent.is_dir():
            yield path, _content(path, template, version)
    for folder in folders:
        for missing in _imported(root / folder):
            yield missing.relative_to(root).as_posix(), _content(".py", None, version)


def _configured(files: BuildFiles, folders: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    scm = files.tool("setuptools_scm") or files.tool("setuptools-scm") or files.setup.get("use_scm_version")
    for key in ("version_file", "write_to"):
        yield from _pair(at(scm, key), at(scm, f"{key}_template"))
    for hook in ("vcs", "version"):
        table = files.tool("hatch", "build", "hooks", hook)
        yield from _pair(at(table, "version-file") or at(table, "path"), at(table, "template"))
    written = at(files.tool("pdm", "version"), "write_to")
    for folder in folders:
        path = f"{folder}/{written}" if folder != "." else written
        yield from _pair(path if written else None, at(files.tool("pdm", "version"), "write_template"))


def _pair(path: object, template: object) -> Iterator[tuple[str, str | None]]:
    if isinstance(path, str):
        yield path.removeprefix("./"), template if isinstance(template, str) else None


def _content(path: str, template: str | None, version: str) -> str:
    numbers = Version(version).release[:3]
    if template is not None:
        filled = template.replace("{version}", version).replace("{version_tuple}", repr(numbers))
        # pdm's templates leave the quotes to pdm; whatever needs more than the version is not guessed.
        if "{" not in template.replace("{version}", "").replace("{version_tuple}", ""):
            return filled.replace("{}", version)
        if template.count("{}") == 1:
            return template.replace("{}", repr(version))
    if not path.endswith(".py"):
        return f"{version}\n"
    return (
        "# Stands for the file that a build of this package would write.\n"
        f"{' = '.join(_TEXTS)} = {version!r}\n"
        f"{' = '.join(_NUMBERS)} = {numbers!r}\n"
        f"{' = '.join(_COMMITS)} = None\n"
        f"__all__ = {[*_TEXTS, *_NUMBERS, *_COMMITS]!r}\n"
    )


def _imported(place: Path) -> Iterator[Path]:
    """Modules below a folder that are imported for a version, and do not exist."""
    found = set()
    packages = {path.parent for path in place.glob("*/__init__.py")}
    for package in sorted(packages):
        for path in sorted(package.rglob("*.py")):
            if _MENTIONED.search(path.read_bytes()):
                found |= set(_missing(path, place, packages))
    yield from sorted(found)


def _missing(path: Path, place: Path, packages: set[Path]) -> Iterator[Path]:
    try:
        module = parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(module):
        if not isinstance(node, ast.ImportFrom):
            continue
        start = path.parents[node.level - 1] if 0 < node.level < len(path.parents) else place
        parts = (node.module or "").split(".") if node.module else []
        names = {alias.name for alias in node.names}
        if not parts and names == {"_version"}:
            parts, names = ["_version"], set()
        if parts and parts[-1] in _MODULES and names <= _KNOWN:
            target = start.joinpath(*parts)
            ours = any(package == target.parent or package in target.parents for package in packages)
            if ours and target.parent.is_dir() and not _exists(target):
                yield target.with_suffix(".py")


def _exists(module: Path) -> bool:
    """As a package, as source or as an extension."""
    return module.is_dir() or any(module.parent.glob(f"{module.name}.*"))
