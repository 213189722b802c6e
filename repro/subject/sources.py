"""What a commit's test file holds, read without running it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from repro.subject.commits import Repository
from repro.subject.git import git
from repro.subject.parsing import parse

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, kw_only=True)
class TestSource:
    """A test file of a commit.

    Args:
        blob: git's id of its content.
        names: its test functions, without parameters, such as `test_a` and `TestA::test_b`.
        certain: whether these are all; not so where tests may come from another file, or the file cannot be
            parsed.
        key: the same for two commits whose test file and conftest.py files are the same: both collect the
            same tests, as far as can be told without running them.
    """

    __test__ = False

    blob: str
    names: tuple[str, ...]
    certain: bool
    key: str


def test_names(repository: Repository, commit_id: str, test_file: str) -> TestSource | None:
    """The test functions in a commit's test file; None where it has no such file.

    Args:
        repository: that holds the commit.
        commit_id: full id.
        test_file: relative to the subject.
    """
    path = f"{repository.prefix}{test_file}"
    folders = [folder.as_posix() for folder in PurePosixPath(test_file).parents]
    conftests = ["conftest.py" if folder == "." else f"{folder}/conftest.py" for folder in folders]
    wanted = [path, *(f"{repository.prefix}{name}" for name in conftests)]
    rows = git(repository.path, "ls-tree", "-z", "--full-tree", commit_id, "--", *wanted).split("\0")
    blobs = dict(_blob_of(row) for row in rows if " blob " in row)
    if path not in blobs:
        return None
    names, certain = _functions(repository.path, blobs[path])
    key = hashlib.sha256("\n".join(f"{blobs[name]} {name}" for name in sorted(blobs)).encode()).hexdigest()
    return TestSource(blob=blobs[path], names=names, certain=certain, key=key[:16])


def _blob_of(row: str) -> tuple[str, str]:
    facts, _, path = row.partition("\t")
    return path, facts.split()[2]


@lru_cache(maxsize=4096)
def _functions(repository: Path, blob: str) -> tuple[tuple[str, ...], bool]:
    try:
        module = parse(git(repository, "cat-file", "blob", blob))
    except (SyntaxError, ValueError):
        return (), False
    return tuple(_tests(module, "")), not may_inherit(module)


def _tests(node: ast.AST, where: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            if child.name.startswith("test"):
                yield f"{where}{child.name}"
        elif isinstance(child, ast.ClassDef):
            yield from _tests(child, f"{where}{child.name}::")
        elif isinstance(child, ast.stmt | ast.ExceptHandler):  # an `if` or a `try` around tests
            yield from _tests(child, where)


def may_inherit(module: ast.Module) -> bool:
    """Whether tests may come from another file: by a base class that is not unittest's, or `import *`."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
        if isinstance(node, ast.ClassDef) and any(map(_is_foreign, node.bases)):
            return True
    return False


def _is_foreign(base: ast.expr) -> bool:
    name = ast.unparse(base)
    return name != "object" and not name.endswith("TestCase")
