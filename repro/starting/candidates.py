"""The tests of a repository, best first: those that run a backward pass and compare what comes out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from repro.config.problems import listing, nearest
from repro.errors import UsageError
from repro.starting.cases import Decorated, first_case, is_parametrised
from repro.subject.parsing import parse

MOST_BYTES = 1_000_000
_FILES = re.compile(r"(?:test_.*|.*_test|test|tests)\.py")
_BACKWARD_NAME = re.compile(r"backward|bwd|grad", re.IGNORECASE)
_BACKWARD_CODE = re.compile(r"\.backward\(|autograd\.grad\(|gradcheck\(|torch\.func\.(?:grad|vjp|jvp)\b")
_COMPARES = re.compile(r"assert_close|allclose|assert_allclose|assert_array|assertAlmostEqual|gradcheck")
_ASIDE = frozenset(
    ["benchmark", "benchmarks", "example", "examples", "third_party", "vendor", "planted", "gpu"]
)
"""Folders whose tests are seldom the ones that are meant."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A test that may be the target.

    Args:
        file: relative to the repository's folder.
        name: as pytest names it, without parameters.
        case: what pytest writes in brackets for its first case, "" without parameters, None where that
            cannot be told from the source.
        line: where it stands.
        weight: the higher, the more it looks like a backward test.
        backward: whether it has a backward pass, by its name or its code.
    """

    file: str
    name: str
    case: str | None
    line: int
    weight: int
    backward: bool

    @property
    def test(self) -> str:
        """Its name with its first case, as far as that is known."""
        return f"{self.name}[{self.case}]" if self.case else self.name


def is_test_file(name: str) -> bool:
    """Whether pytest, or a person, would look for tests in a file of that name."""
    return _FILES.fullmatch(PurePosixPath(name).name) is not None


def candidates(root: Path, names: Iterable[str]) -> list[Candidate]:
    """Every test of the named files, best first; files that cannot be parsed have none."""
    found = [test for name in names for test in tests_of(root, name)]
    return sorted(found, key=lambda test: (-test.weight, test.file.count("/"), test.file, test.line))


def tests_of(root: Path, name: str) -> list[Candidate]:
    """The tests of one file."""
    try:
        if (root / name).stat().st_size > MOST_BYTES:
            return []
        source = (root / name).read_text(encoding="utf-8", errors="replace")
        module = parse(source if "def test" in source else "")
    except (OSError, SyntaxError, ValueError):
        return []
    lines = source.split("\n")
    return [_candidate(name, lines, node, holder) for node, holder in _functions(module)]


def _functions(module: ast.Module) -> Iterator[tuple[_Function, ast.ClassDef | None]]:
    """Test functions, and test methods with their class; as pytest collects them."""
    for node in module.body:
        if isinstance(node, _Function) and node.name.startswith("test"):
            yield node, None
        if isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or _is_unittest(node)):
            methods = (each for each in node.body if isinstance(each, _Function))
            yield from ((method, node) for method in methods if method.name.startswith("test"))


def _is_unittest(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("TestCase") for base in node.bases)


def _candidate(file: str, lines: Sequence[str], node: _Function, holder: ast.ClassDef | None) -> Candidate:
    code = "\n".join(lines[node.lineno - 1 : node.end_lineno])
    by_name, by_code = bool(_BACKWARD_NAME.search(node.name)), bool(_BACKWARD_CODE.search(code))
    weight = 3 * by_name + 2 * by_code + bool(_COMPARES.search(code)) + 4 * (node.name == "test_backward")
    weight -= 2 * bool(_ASIDE & set(PurePosixPath(file).parts))
    return Candidate(
        file=file,
        name=f"{holder.name}::{node.name}" if holder else node.name,
        case=_case(node, holder),
        line=node.lineno,
        weight=weight,
        backward=by_name or by_code,
    )


def _case(node: Decorated, holder: ast.ClassDef | None) -> str | None:
    return None if holder is not None and is_parametrised(holder) else first_case(node)


def named(tests: Sequence[Candidate], asked: str) -> Candidate:
    """The test that a user names: `NAME`, `CLASS::NAME`, `NAME[CASE]`, each with or without `FILE.py::`.

    Raises:
        UsageError: there is none; with the nearest names.
    """
    file, separator, name = asked.partition(".py::")
    bare = (name if separator else asked).partition("[")[0]
    fitting = [test for test in tests if bare in (test.name, test.name.rpartition("::")[2])]
    if separator:
        fitting = [test for test in fitting if f"/{test.file}".endswith(f"/{file.removeprefix('./')}.py")]
    if fitting:
        return fitting[0]
    known = list(dict.fromkeys(test.name for test in tests))
    near = nearest(bare, known) or known[:3]
    raise UsageError(
        f"there is no test `{asked}` in the repository's test files",
        why=f"the nearest are {listing(near)}" if near else "none of its files has a test",
        next_step="correct --test, or name its file with --test-file",
    )
