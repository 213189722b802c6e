"""The test file and the test in it: found, or named as missing with what looks most like them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from repro.config.problems import listing, nearest
from repro.errors import UsageError
from repro.subject import tree
from repro.subject.parsing import parse
from repro.subject.sources import may_inherit

_TESTS = re.compile(r"(?:unit_?|.*_)?(?:tests?|testing)")


@dataclass(frozen=True, kw_only=True)
class TestFile:
    """A test file that was found.

    Args:
        name: path relative to the subject; the bare name of a file from outside.
        host: where it is on this machine.
        outside: whether it is no part of the subject.
        digest: hash of its content.
    """

    __test__ = False

    name: str
    host: Path
    outside: bool
    digest: str


def find_test_file(given: str, root: Path, folder: Path | None, state: Path) -> TestFile:
    """Find a test file in the subject's copy, or else take it from outside.

    Args:
        given: path relative to the subject or to the current folder, or absolute.
        root: the subject's copy.
        folder: where the subject was copied from, or None for a URL.
        state: the kit's folder; a file from outside is copied to `test-files/` there.

    Raises:
        UsageError: when there is no such file.
    """
    own = Path(given).expanduser().resolve()
    candidates = [os.path.normpath(given)]
    if folder is not None and own.is_relative_to(folder):
        candidates.append(own.relative_to(folder).as_posix())
    for name in candidates:
        if not name.startswith(("/", "..")) and (root / name).is_file():
            return TestFile(name=name, host=root / name, outside=False, digest="")
    if own.is_file():
        return from_outside(own, state)
    raise _missing(given, root)


def from_outside(path: Path, state: Path) -> TestFile:
    """Keep a copy of a user's own test file, named by its content."""
    digest = tree.digest(tree.entries_of(path.parent, [path.name]))
    kept = state / "test-files" / digest / path.name
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as draft:
            with path.open("rb") as source:
                shutil.copyfileobj(source, draft)
            Path(draft.name).chmod(0o444)
        Path(draft.name).rename(kept)
    return TestFile(name=path.name, host=kept, outside=True, digest=digest)


def _missing(given: str, root: Path) -> UsageError:
    files = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*.py"))]
    tests = [name for name in files if "test" in name]
    near = nearest(given, tests) or tests[:3]
    return UsageError(
        f"there is no test file `{given}` in the subject",
        why=f"the nearest are {listing(near)}" if near else "the subject has no file with `test` in its name",
        next_step="correct subject.test_file in matrix.yaml, or give --test-file",
    )


def is_test_part(name: str, test_file: str) -> bool:
    """Whether a file is the test, or lies in the topmost folder of tests above it.

    Where no folder above the test is named after tests, conftest.py files beside and above it belong to it.

    Args:
        name: of the file, relative to the subject.
        test_file: relative to the subject.
    """
    path, test = PurePosixPath(name), PurePosixPath(test_file)
    folder = next((parent for parent in reversed(test.parents) if _TESTS.fullmatch(parent.name)), None)
    if folder is not None:
        return folder in path.parents
    return path == test or (path.name == "conftest.py" and path.parent in test.parents)


def check_test(test: str, file: Path) -> None:
    """Refuse a test whose name does not occur in its file; parameters are only known inside a cell.

    Raises:
        UsageError: with the nearest names.
    """
    name = test.partition("[")[0].rpartition("::")[2]
    source = file.read_text(encoding="utf-8", errors="replace")
    if re.search(rf"\b{re.escape(name)}\b", source):
        return
    try:
        module = parse(source)
    except (SyntaxError, ValueError):
        return
    if may_inherit(module):
        return
    known = list(_tests(module))
    near = nearest(name, known) or known[:3]
    raise UsageError(
        f"there is no test `{name}` in {file.name}",
        why=f"the nearest are {listing(near)}"
        if near
        else "the file has no function whose name begins with test",
        next_step="correct subject.test in matrix.yaml, or --test",
    )


def _tests(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield node.name
