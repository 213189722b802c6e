"""Which names a piece of source binds and reads."""

from __future__ import annotations

import ast
from typing import FrozenSet, Iterator, List, Set


def names_on(tree: ast.Module, lines: Set[int]) -> Set[str]:
    """Names and attributes that these lines read, and what the names stand for at module level."""
    used = {name for node in ast.walk(tree) if getattr(node, "lineno", 0) in lines for name in _read(node)}
    bound = {name: statement for statement in tree.body for name in bound_by(statement)}
    pending = [name for name in used if name in bound]
    while pending:
        more = {name for node in ast.walk(bound[pending.pop()]) for name in _read(node)} - used
        pending += [name for name in more if name in bound]
        used |= more
    return used


def functions_on(tree: ast.Module, lines: Set[int]) -> Set[str]:
    """Names of the functions of whose bodies a line is among `lines`."""
    functions = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return {
        function.name
        for function in functions
        if any(statement.lineno in lines for statement in function.body)
    }


def bound_by(statement: ast.stmt) -> FrozenSet[str]:
    """The names that an assignment binds; none for other statements."""
    targets: List[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return frozenset(name for target in targets for name in names_in(target))


def names_in(target: ast.expr) -> FrozenSet[str]:
    """The names in the target of an assignment."""
    return frozenset(node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _read(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
