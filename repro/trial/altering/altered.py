"""Runs a test with other arguments and other constants than its file says; nothing on disk is changed."""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import inspect
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

import pytest

from .constants import change_constants

_REWRITE = "_pytest.assertion.rewrite"


def relative(path: Path, root: Path) -> str:
    """How an address names a file: relative to the subject's root; the bare name of one from outside."""
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if root in path.parents else path.name


def install_constants(changes: Mapping[str, Any], root: Path, test_file: Path) -> None:
    """Have modules imported with changed constants from now on, by Python's import and by pytest's own."""
    names = {address.rsplit(":", 2)[0] for address in changes}
    files = {
        str(path.resolve()): name for name in names for path in (root / name, test_file) if _is(path, name)
    }
    if files:
        _patch_python(changes, files)
        _patch_pytest(changes, files)


def _is(path: Path, name: str) -> bool:
    return path.as_posix().endswith(name) and path.is_file()


def _patch_python(changes: Mapping[str, Any], files: Mapping[str, str]) -> None:
    loader: Any = importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self: Any, fullname: str) -> Any:
        path = str(Path(self.get_filename(fullname)).resolve())
        if path not in files:
            return original(self, fullname)
        tree = ast.parse(Path(path).read_bytes(), filename=path)
        change_constants(tree, files[path], changes)
        return compile(tree, path, "exec", dont_inherit=True)

    loader.get_code = get_code


def _patch_pytest(changes: Mapping[str, Any], files: Mapping[str, str]) -> None:
    """pytest compiles test files and conftest.py by itself, after it rewrote their assertions."""
    rewrite: Any = importlib.import_module(_REWRITE)
    original = rewrite.rewrite_asserts

    def rewrite_asserts(tree: ast.Module, source: Any, module_path: Any = None, config: Any = None) -> None:
        path = str(Path(str(module_path)).resolve())
        if path in files:
            change_constants(tree, files[path], changes)
        original(tree, source, module_path, config)

    rewrite.rewrite_asserts = rewrite_asserts
    rewrite._read_pyc = lambda *args, **options: None  # a cached module has the old constants


def change_arguments(item: pytest.Item, arguments: Mapping[str, Any]) -> None:
    """Give a test other values for parameters of its parametrization or for its own defaults.

    Raises:
        ValueError: the test has no such argument.
    """
    for name, value in arguments.items():
        own = _own_values(item, name)
        for held in _parameters(item):
            if name in held:
                held[name] = as_before(held[name], value, own)
                break
        else:
            _change_default(item, name, value)


def describe_arguments(item: pytest.Item) -> List[Dict[str, Any]]:
    """Arguments that can be changed: name, kind, value, and the values that the parametrization lists.

    Kinds: `bool`, `int`, `float`, `sizes` (a nested list of whole numbers), `dtype`, and `choice` for
    everything else, whose value is its index among the listed ones.
    """
    found: Dict[str, Any] = {}
    for held in _parameters(item):
        found.update(held)
    described = [_described(name, value, _own_values(item, name)) for name, value in found.items()]
    described += [_described(name, value, []) for name, value in _defaults(item).items() if name not in found]
    return [one for one in described if one is not None]


def as_before(template: Any, value: Any, own: Sequence[Any] = ()) -> Any:
    """A value from JSON in the type that the argument has: tuples, named tuples and dtypes included."""
    if isinstance(value, dict):
        return own[int(value["choice"])]
    if _is_dtype(template):
        return getattr(importlib.import_module("torch"), str(value))
    if isinstance(template, (list, tuple)):
        inner = [as_before(template[min(i, len(template) - 1)], one) for i, one in enumerate(value)]
        return type(template)(*inner) if hasattr(template, "_fields") else type(template)(inner)
    kept: Any = type(template)
    return kept(value)


def _described(name: str, value: Any, own: Sequence[Any]) -> Optional[Dict[str, Any]]:
    if _is_dtype(value):
        return {"name": name, "kind": "dtype", "value": str(value).replace("torch.", "")}
    if isinstance(value, (bool, int, float)):
        return {"name": name, "kind": type(value).__name__, "value": value}
    if isinstance(value, (list, tuple)) and (nested := _nested(value)):
        fixed = {"fixed": True} if hasattr(value, "_fields") else {}
        return {"name": name, "kind": "sizes", "value": nested, **fixed}
    place = _place(value, own)
    if place is None:
        return None
    return {"name": name, "kind": "choice", "value": place, "choices": [str(one)[:80] for one in own]}


def _nested(value: Any) -> Any:
    """A (nested) sequence of whole numbers as lists, else None."""
    if type(value) is int:
        return value
    if not isinstance(value, (list, tuple)) or not value:
        return None
    inner = [_nested(one) for one in value]
    return None if any(one is None for one in inner) else inner


def _is_dtype(value: Any) -> bool:
    return type(value).__module__ == "torch" and type(value).__name__ == "dtype"


def _place(value: Any, own: Sequence[Any]) -> Optional[int]:
    return next((place for place, one in enumerate(own) if one is value or repr(one) == repr(value)), None)


def _parameters(item: pytest.Item) -> List[Dict[str, Any]]:
    """Where pytest keeps the values of a parametrization: older versions have a place for direct ones."""
    spec = getattr(item, "callspec", None)
    return [held for held in (getattr(spec, "params", None), getattr(spec, "funcargs", None)) if held]


def _own_values(item: pytest.Item, name: str) -> List[Any]:
    """The values that the test's parametrization lists for an argument."""
    for marker in item.iter_markers("parametrize"):
        names, values = _names_and_values(marker)
        if name in names:
            place = names.index(name)
            return [value[place] if len(names) > 1 else value for value in values]
    return []


def _names_and_values(marker: Any) -> Any:
    options = {**dict(zip(("argnames", "argvalues"), marker.args)), **marker.kwargs}  # noqa: B905
    names = options["argnames"]
    names = (
        [one.strip() for one in names.split(",") if one.strip()] if isinstance(names, str) else list(names)
    )
    return names, list(_plain(options["argvalues"], len(names)))


def _plain(values: Sequence[Any], width: int) -> Iterator[Any]:
    for value in values:
        if hasattr(value, "marks") and hasattr(value, "values"):  # pytest.param
            yield value.values if width > 1 else value.values[0]
        else:
            yield value


def _defaults(item: pytest.Item) -> Dict[str, Any]:
    function = getattr(item, "function", None)
    if function is None:
        return {}
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}


def _change_default(item: pytest.Item, name: str, value: Any) -> None:
    defaults = _defaults(item)
    if name not in defaults:
        raise ValueError(f"the test has no argument {name!r} that can be changed")
    function: Any = inspect.unwrap(getattr(item, "function"))  # noqa: B009
    function = getattr(function, "__func__", function)
    new = as_before(defaults[name], value)
    if name in (function.__kwdefaults__ or {}):
        function.__kwdefaults__[name] = new
        return
    held = {**defaults, name: new}
    positional = list(inspect.signature(function).parameters.values())
    names = [one.name for one in positional if one.kind is not one.KEYWORD_ONLY and one.name in defaults]
    function.__defaults__ = tuple(held[one] for one in names)
