"""What a failing case is made of: arguments of the test, and constants that its trial came across."""

from __future__ import annotations

import ast
import contextlib
import sys
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Set, Tuple

from ..altering.altered import describe_arguments, relative
from ..altering.constants import Constant, find_constants
from ..altering.names import bound_by, functions_on, names_on
from ..protocol import Protocol
from ..records import Event
from ..request import Request
from ..trials import Trials

Lines = Dict[str, Set[int]]
"""By file, the lines that ran."""


class Describing(Trials):
    """One trial, under a trace of the test's own lines; one line says what its case is made of."""

    def run(self, protocol: Protocol) -> None:
        """Run the first seed's trial, and describe it."""
        files, root = case_files(self._request), self._request.root
        with lines_run(files) as ran:
            self._trial(protocol, self._request.first_trial, self._request.seeds[0])
        arguments = describe_arguments(protocol.item)
        function = getattr(protocol.item, "originalname", protocol.item.name)
        told = {(function, one["name"]) for one in arguments}
        constants = [_described(one) for one in constants_run(files, ran, root) if _key(one) not in told]
        self._records.write(Event.CASE, arguments=arguments, constants=constants)
        self._records.write(Event.BLOCK_END, counts=dict(self._counts), complete=True, reason="")


def case_files(request: Request) -> List[Path]:
    """Files whose constants belong to the case: the test file, conftest.py, and modules of tests beside it.

    Modules beside a test are the code under test where their folder is one that packages are imported from.
    """
    folder = request.test_file.resolve().parent
    roots = {request.root.resolve(), *(Path(one).resolve() for one in request.python_path)}
    beside = folder.glob("conftest.py" if folder in roots else "*.py")
    return sorted({request.test_file.resolve(), *(path.resolve() for path in beside)})


@contextlib.contextmanager
def lines_run(files: Sequence[Path]) -> Iterator[Lines]:
    """Note which lines of these files run, in any thread that Python starts."""
    wanted = {str(path) for path in files}
    known: Dict[str, str] = {}
    ran: Lines = defaultdict(set)

    def local(frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            ran[known[frame.f_code.co_filename]].add(frame.f_lineno)
        return local

    def enter(frame: Any, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in known:
            known[name] = str(Path(name).resolve()) if name[:1] != "<" else name
        return local if known[name] in wanted else None

    before = sys.gettrace()
    threading.settrace(enter)  # threads that begin from now on
    sys.settrace(enter)
    try:
        yield ran
    finally:
        sys.settrace(before)
        threading.settrace(None)


def constants_run(files: Sequence[Path], ran: Lines, root: Path) -> List[Constant]:
    """The constants that the lines that ran use.

    A constant at module level counts where a line that ran reads a name that it is bound to.
    """
    trees = {path: ast.parse(path.read_bytes(), filename=str(path)) for path in files}
    read: Set[str] = set()
    for path, tree in trees.items():
        read |= names_on(tree, ran.get(str(path), set()))
    for tree in trees.values():
        read |= names_on(tree, _lines_of(tree, read))
    return [
        constant
        for path, tree in trees.items()
        for constant in find_constants(tree, relative(path, root))
        if _counts(constant, tree, ran.get(str(path), set()), read)
    ]


def _lines_of(tree: ast.Module, names: Set[str]) -> Set[int]:
    """Lines of the statements at module level that bind a name: what they read is read, too."""
    bound = [statement for statement in tree.body if bound_by(statement) & names]
    return {line for one in bound for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}


def _counts(constant: Constant, tree: ast.Module, lines: Set[int], read: Set[str]) -> bool:
    if not constant.function:
        return bool(constant.binds & read)
    line = int(constant.address.rsplit(":", 2)[1])
    return line in lines or _spans(tree, line, lines)


def _spans(tree: ast.Module, line: int, lines: Set[int]) -> bool:
    """Whether a statement that ran holds this line, or a function that ran has it among its defaults."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.lineno <= line < node.body[0].lineno:
                return node.name in functions_on(tree, lines)
        elif isinstance(node, ast.stmt) and not isinstance(node, (ast.ClassDef, ast.If, ast.For, ast.While)):
            end = node.end_lineno or node.lineno
            if node.lineno <= line <= end and lines & set(range(node.lineno, end + 1)):
                return True
    return False


def _key(constant: Constant) -> Tuple[str, str]:
    return constant.function, constant.name


def _described(constant: Constant) -> Dict[str, Any]:
    return {
        "address": constant.address,
        "name": constant.name,
        "value": constant.value,
        "statement": constant.statement,
    }
