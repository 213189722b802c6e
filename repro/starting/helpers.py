"""What tests share: modules of their own package, and what pytest puts within their reach."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from repro.subject.declared import read_build_files
from repro.subject.parsing import parse


@dataclass(frozen=True, kw_only=True)
class Helpers:
    """Modules beside the code under test that test files import.

    Args:
        files: theirs, relative to the repository's top.
        names: their top-level names; nothing has to be installed for these.
        parts: what a copy of the subject needs so that they can be imported.
    """

    files: tuple[str, ...]
    names: frozenset[str]
    parts: tuple[str, ...]


def helpers_of(root: Path, tests: Sequence[str], known: Collection[str]) -> Helpers:
    """Follow the imports of test files, one module at a time: a package of tests need not be loaded whole.

    Args:
        root: top of the repository.
        tests: test file and conftest files, relative.
        known: top-level names that are found otherwise.
    """
    files: dict[str, None] = {}
    names: dict[str, str] = {}
    pending = list(tests)
    while pending:
        name = pending.pop()
        for top, folder, found in _reached(root, name, known):
            names.setdefault(top, folder)
            pending += [file for file in found if file not in files and file not in tests]
            files.update(dict.fromkeys(file for file in found if file not in tests))
    parts = (_part(root, folder, top) for top, folder in names.items())
    return Helpers(files=tuple(files), names=frozenset(names), parts=tuple(parts))


def needed_or_skipped(root: Path, test_file: str, test: str) -> set[str]:
    """Top-level names of what a test skips itself without, by `pytest.importorskip` in it or in its file."""
    module = _parsed(root / test_file)
    path = test.partition("[")[0].split("::")
    calls = (call for node in module.body for call in _calls(node, path))
    skips = (call for call in calls if ast.unparse(call.func).endswith("importorskip") and call.args)
    names = (call.args[0].value for call in skips if isinstance(call.args[0], ast.Constant))
    return {name.partition(".")[0] for name in names if isinstance(name, str)}


def _calls(node: ast.AST, path: Sequence[str]) -> Iterator[ast.Call]:
    """Calls of a statement, those of other functions and classes than the named ones left out."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if not path or node.name != path[0]:
            return
        path = path[1:]
    if isinstance(node, ast.Call):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, path)


def _reached(root: Path, name: str, known: Collection[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Of each import of a file: its top-level name, the folder that it is found in, and its files there."""
    base, package = _package(root, name)
    for dotted in _imports(root / name, package):
        top = dotted.partition(".")[0]
        for folder in () if top in known else (base, *_given(root)):
            if found := _files(root, folder, dotted):
                yield top, folder, found
                break


def _package(root: Path, name: str) -> tuple[str, tuple[str, ...]]:
    """The folder that pytest puts on the path for a file, and the package of the file below it."""
    folder = PurePosixPath(name).parent
    package: tuple[str, ...] = ()
    while folder.name and (root / folder / "__init__.py").is_file():
        folder, package = folder.parent, (folder.name, *package)
    return folder.as_posix(), package


def _given(root: Path) -> list[str]:
    """Folders that pyproject.toml has pytest put on the path."""
    given = read_build_files(root).tool("pytest", "ini_options", "pythonpath")
    folders = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
    return [PurePosixPath(folder).as_posix() for folder in folders if isinstance(folder, str)]


def _imports(path: Path, package: tuple[str, ...]) -> Iterator[str]:
    """Dotted names that a file may import when it is loaded; of `from a import b`, `a.b`."""
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level <= len(package):
            above = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join((*above, *((node.module,) if node.module else ())))
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def _files(root: Path, folder: str, dotted: str) -> list[str]:
    """Files that are loaded for a dotted name, as far as it names modules."""
    found, path = [], PurePosixPath(folder)
    for part in dotted.split("."):
        path = path / part
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if (root / file).is_file():
                found.append(PurePosixPath(file).as_posix())
        if not (root / path).is_dir():
            break
    return found


def _part(root: Path, folder: str, top: str) -> str:
    path = PurePosixPath(folder) / top
    return path.as_posix() if (root / path).is_dir() else f"{path}.py"


def _parsed(path: Path) -> ast.Module:
    try:
        return parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
