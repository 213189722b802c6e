"""Whole numbers that a test file binds as literals: found by their place, and changed in the syntax tree.

An address is `FILE:LINE:COLUMN`, the file relative to the subject's root. Nothing on disk is changed.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Optional, Set, Tuple

from .names import names_in

_LARGEST = 2**31
_NO_SIZES = frozenset(
    {"dim", "axis", "seed", "dims", "ndim", "atol", "rtol", "stacklevel", "start_dim", "end_dim"}
)
_NO_CALLS = frozenset(
    {"permute", "transpose", "unsqueeze", "squeeze", "flatten", "softmax", "movedim", "size", "round"}
    | {"parametrize", "manual_seed", "seed", "approx", "getenv", "timeout"}
)
"""Calls and keywords whose numbers are dimensions, seeds or tolerances, and no sizes."""


@dataclass(frozen=True)
class Constant:
    """A literal that may be a size.

    Args:
        address: `FILE:LINE:COLUMN`.
        name: what it is bound to, as a person would say it: `N`, `SMALL.N`, `make()`.
        value: a whole number, or a (nested) list of them.
        function: the function whose body or defaults hold it, or "" at module level.
        statement: for one at module level, its statement's first line: such are bound together.
        binds: names that are bound to it there.
    """

    address: str
    name: str
    value: Any
    function: str
    statement: int
    binds: FrozenSet[str] = frozenset()


def find_constants(tree: ast.Module, file: str) -> List[Constant]:
    """The literals of a module that may be sizes, in the order of the source.

    Left out are indexes, exponents, negative numbers, 0 and 1, what stands in an assertion, a decorator or
    an annotation, and what is plainly a dimension, a seed or a tolerance.
    """
    finder = _Finder(file)
    finder.visit(tree)
    return finder.found


def change_constants(tree: ast.Module, file: str, changes: Mapping[str, Any]) -> None:
    """Change literals of a module in place; `changes` may name other files' addresses, too.

    Raises:
        ValueError: an address of this file names no constant.
    """
    mine = {address: value for address, value in changes.items() if address.rsplit(":", 2)[0] == file}
    missing = set(mine) - {constant.address for constant in find_constants(tree, file)}
    if missing:
        raise ValueError(f"no constant that may be changed at {', '.join(sorted(missing))}")
    _Changer(file, mine).visit(tree)
    ast.fix_missing_locations(tree)


def _value(node: ast.AST) -> Any:
    """The number or list that a literal is, or None where it is nothing that may be a size."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int and 0 <= node.value <= _LARGEST else None
    if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
        values = [_value(element) for element in node.elts]
        return None if any(value is None for value in values) else values
    return None


def _leaves(value: Any) -> Iterator[int]:
    for one in value if isinstance(value, list) else [value]:
        yield from _leaves(one) if isinstance(one, list) else [one]


class _Finder(ast.NodeVisitor):
    """Walks a module with the name of what encloses each literal at hand."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._names: List[str] = []
        self._function = ""
        self._statement: Optional[ast.stmt] = None
        self._unpacked: Set[int] = set()
        self._binds: FrozenSet[str] = frozenset()
        self.found: List[Constant] = []

    def generic_visit(self, node: ast.AST) -> None:
        """Take a literal, or go on into what the node holds."""
        value = _value(node) if id(node) not in self._unpacked else None
        if value is not None:
            self._take(node, value)
        else:
            super().generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A body and its defaults; decorators and annotations hold no sizes of this test."""
        outer, self._function = self._function, node.name
        arguments = node.args.posonlyargs + node.args.args
        with_default = arguments[len(arguments) - len(node.args.defaults) :]
        pairs = list(zip(with_default, node.args.defaults))  # noqa: B905
        for argument, given in zip(node.args.kwonlyargs, node.args.kw_defaults):  # noqa: B905
            pairs += [(argument, given)] if given else []
        for argument, default in pairs:
            self._within(argument.arg, default)
        for statement in node.body:
            self.visit(statement)
        self._function = outer

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]  # noqa: N815

    def visit_Assign(self, node: ast.Assign) -> None:
        """A name for what is bound; numbers bound together by unpacking are apart."""
        self._begin(node)
        target, value = node.targets[0], node.value
        pairs: List[Tuple[ast.expr, ast.expr]] = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            self._unpacked.add(id(value))
            pairs = list(zip(target.elts, value.elts))  # noqa: B905
        for one, given in pairs:
            self._binds = names_in(one)
            self._within(ast.unparse(one), given)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """As an assignment, less its annotation."""
        self._begin(node)
        self._binds = names_in(node.target)
        if node.value is not None:
            self._within(ast.unparse(node.target), node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Arguments by their names; what is called, for those without."""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        self.visit(node.func)
        if called in _NO_CALLS:
            return
        for argument in node.args:
            self._within("" if self._names else f"{called}()", argument)
        for keyword in node.keywords:
            if keyword.arg not in _NO_SIZES:
                self._within(keyword.arg or "", keyword.value)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Without exponents and shifts."""
        if not isinstance(node.op, (ast.Pow, ast.LShift, ast.RShift)):
            super().generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Without the index."""
        self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Nothing: what a test demands is no size."""

    visit_Compare = visit_UnaryOp = visit_JoinedStr = visit_Assert  # type: ignore[assignment]  # noqa: N815

    def _begin(self, statement: ast.stmt) -> None:
        if not self._function:
            self._statement = statement

    def _within(self, name: str, node: ast.AST) -> None:
        self._names.append(name)
        self.visit(node)
        self._names.pop()

    def _take(self, node: ast.AST, value: Any) -> None:
        if max(_leaves(value)) < 2 and not (isinstance(value, list) and len(value) > 1):
            return
        statement = None if self._function else self._statement
        place: Any = node
        self.found.append(
            Constant(
                address=f"{self._file}:{place.lineno}:{place.col_offset}",
                name=".".join(name for name in self._names if name) or str(value),
                value=value,
                function=self._function,
                statement=statement.lineno if statement else 0,
                binds=self._binds if statement else frozenset(),
            )
        )


class _Changer(ast.NodeTransformer):
    """Puts other values in the places of literals."""

    def __init__(self, file: str, changes: Mapping[str, Any]) -> None:
        self._changes: Dict[Tuple[int, int], Any] = {
            tuple(map(int, address.rsplit(":", 2)[1:])): value  # type: ignore[misc]
            for address, value in changes.items()
        }

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Replace the outermost literal at a place."""
        place = (getattr(node, "lineno", 0), getattr(node, "col_offset", -1))
        many = isinstance(node, (ast.List, ast.Tuple))
        fits = place in self._changes and many == isinstance(self._changes[place], list)
        if fits and _value(node) is not None:
            new: ast.AST = _literal(node, self._changes.pop(place))
            return new
        super().generic_visit(node)
        return node


def _literal(template: ast.AST, value: Any) -> Any:
    """A literal of the same kind with another value: lists stay lists, tuples tuples."""
    node: Any = copy.deepcopy(template)
    if isinstance(value, list):
        old = node.elts
        node.elts = [_literal(old[min(place, len(old) - 1)], one) for place, one in enumerate(value)]
    else:
        node.value = value
    return node
