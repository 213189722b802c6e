"""One case of a parametrised test, as pytest names it: from the source alone, and only where that is sure."""

from __future__ import annotations

import ast
from collections.abc import Sequence

_DTYPES = frozenset(
    f"torch.{name}"
    for name in ("float16", "bfloat16", "float32", "float64", "half", "float", "double", "int32", "int64")
)
"""Values that pytest has no text for: it counts them, as it does with any object without a name."""

Decorated = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def is_parametrised(node: Decorated) -> bool:
    """Whether a test or a class has `pytest.mark.parametrize` above it."""
    return any(_marks(node))


def first_case(node: Decorated) -> str | None:
    """What pytest writes in brackets for a first case: "" without parameters, None where that is not sure."""
    if any(_may_parametrise(each) for each in node.decorator_list):
        return None
    parts = []
    for call in reversed(_marks(node)):  # the decorator nearest to the function comes first
        part = _first_of(call)
        if part is None:
            return None
        parts.append(part)
    return "-".join(parts)


def _may_parametrise(decorator: ast.expr) -> bool:
    """Whether a decorator is neither a mark of pytest's nor of the standard library: it may be anything."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = ast.unparse(called)
    return ".mark." not in f".{name}" and not name.startswith(
        ("torch.", "unittest.", "mock.", "staticmethod")
    )


def _marks(node: Decorated) -> list[ast.Call]:
    calls = [each for each in node.decorator_list if isinstance(each, ast.Call)]
    return [call for call in calls if ast.unparse(call.func).endswith("mark.parametrize")]


def _first_of(call: ast.Call) -> str | None:
    """The id of the first set of values of one decorator."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    names, values = [*call.args, given.get("argnames"), given.get("argvalues")][:2]
    rows = values.elts if isinstance(values, ast.List | ast.Tuple) else []
    arguments = _names(names)
    if not rows or not arguments or set(given) - {"argnames", "argvalues", "ids"}:
        return None
    if "ids" in given:
        ids = given["ids"]
        return _text(ids.elts[0]) if isinstance(ids, ast.List | ast.Tuple) and ids.elts else None
    return _id_of(arguments, rows[0])


def _names(node: ast.expr | None) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    if isinstance(node, ast.List | ast.Tuple):
        return [text for each in node.elts if (text := _text(each)) is not None]
    return []


def _id_of(arguments: Sequence[str], row: ast.expr) -> str | None:
    if isinstance(row, ast.Call):  # pytest.param(..., id="...")
        if not ast.unparse(row.func).endswith("param"):
            return None
        own = next((keyword.value for keyword in row.keywords if keyword.arg == "id"), None)
        if own is not None:
            return _text(own)
        values = row.args
    else:
        values = row.elts if len(arguments) > 1 and isinstance(row, ast.List | ast.Tuple) else [row]
    if len(values) != len(arguments):
        return None
    parts = [_value(name, value) for name, value in zip(arguments, values, strict=True)]
    return "-".join(part for part in parts if part) if all(parts) else None


def _value(argument: str, node: ast.expr) -> str | None:
    """Text, numbers and truth values as they are; what has no text, as the argument's name and a number."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool | None):
        plain = str(node.value)
        return plain if plain.isascii() and plain.isprintable() else None
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        return f"-{node.operand.value}" if isinstance(node.operand.value, int | float) else None
    if isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Set) or ast.unparse(node) in _DTYPES:
        return f"{argument}0"
    return None


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
