"""Runs inside a cell, as `python calling.py REQUEST.json OUT.json`: how the target test is called.

Collects the test as the plugin does and writes the Python statements that call it with its parameters and
fixtures. Needs Python 3.9, pytest and the plugin alone; nothing else of the kit.
"""

from __future__ import annotations

import enum
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from repro_trial import selection  # type: ignore[import-not-found]
from repro_trial.arguments import pytest_arguments  # type: ignore[import-not-found]
from repro_trial.request import read_request  # type: ignore[import-not-found]

STUBS = {
    "record_property": "lambda *_: None",
    "record_testsuite_property": "lambda *_: None",
    "record_xml_attribute": "lambda *_: None",
    "tmp_path": "Path(tempfile.mkdtemp())",
    "monkeypatch": "pytest.MonkeyPatch()",
}
"""pytest's own fixtures that a plain value can stand for."""

SETUPS = ("setup_module", "setup_function", "setup_class", "setUpModule", "setUpClass", "asyncSetUp")


class Refused(Exception):  # noqa: N818
    """Why the test cannot be called without pytest."""


class Call:
    """Collects statements that call one item."""

    def __init__(self, item: Any) -> None:
        self.item = item
        self.module = item.module
        self.imports: list[str] = []
        self.helpers: list[str] = []
        self.statements: list[str] = []
        self.conftests: list[str] = []
        self._done: dict[str, str] = {}
        self._root = Path.cwd()

    def describe(self) -> dict[str, Any]:
        """The statements, and what they need."""
        item = self.item
        if not hasattr(item, "function") or item.get_closest_marker("asyncio"):
            raise Refused("it is no plain function")
        self._check_setups()
        self.conftests = self._find_conftests()
        info = item._fixtureinfo
        wanted = [name for name in info.names_closure if name in info.argnames or self._is_own(name)]
        for name in wanted:
            self._value(name)
        arguments = ", ".join(f"{name}={self._done[name]}" for name in info.argnames)
        self._call(arguments)
        return {
            "module": self.module.__name__,
            "imports": sorted(set(self.imports)),
            "helpers": sorted(set(self.helpers)),
            "statements": self.statements,
            "conftests": self.conftests,
            "folder": self._relative(Path(self._rootdir())),
        }

    def _call(self, arguments: str) -> None:
        item = self.item
        if item.cls is None:
            self.statements.append(f"test.{item.originalname or item.name}({arguments})")
            return
        name = f"test.{item.cls.__qualname__}"
        if hasattr(item.cls, "debug") and hasattr(item.cls, "setUp"):
            self.statements.append(f"{name}({item.originalname or item.name!r}).debug()")
            return
        self.statements.append(f"instance = {name}()")
        if hasattr(item.cls, "setup_method"):
            takes = item.cls.setup_method.__code__.co_argcount > 1
            self.statements.append(f"instance.setup_method({'None' if takes else ''})")
        self.statements.append(f"instance.{item.originalname or item.name}({arguments})")

    def _check_setups(self) -> None:
        for home in (self.module, self.item.cls):
            for name in SETUPS:
                own = getattr(home, name, None)
                if own is not None and "unittest" not in getattr(own, "__module__", ""):
                    raise Refused(f"it relies on {name}")

    # Parameters and fixtures ---------------------------------------------------------------------------

    def _value(self, name: str) -> str:
        """An expression for a fixture or a parameter; made once a trial, as pytest does."""
        if name in self._done:
            return self._done[name]
        callspec = getattr(self.item, "callspec", None)
        definition = self._definition(name)
        if definition is None and callspec is not None and name in callspec.params:
            self._done[name] = self._parameter(name, callspec)
        elif name in STUBS:
            self.imports += [part for part in ("pytest", "tempfile") if part in STUBS[name]]
            self._assign(name, STUBS[name])
        elif definition is None:
            raise Refused(f"it needs the fixture {name}, which comes from pytest or a plugin")
        else:
            self._assign(name, self._fixture(name, definition, callspec))
        return self._done[name]

    def _assign(self, name: str, expression: str) -> None:
        self.statements.append(f"{name} = {expression}")
        self._done[name] = name

    def _definition(self, name: str) -> Any | None:
        """The definition of a fixture of the subject's own; None for parameters, pytest's and plugins'."""
        found = self.item._fixtureinfo.name2fixturedefs.get(name) or ()
        definition = found[-1] if found else None
        return definition if definition is not None and self._home(definition.func) else None

    def _is_own(self, name: str) -> bool:
        """Whether a fixture that the test does not name is the subject's: autouse, or `usefixtures`."""
        return self._definition(name) is not None

    def _fixture(self, name: str, definition: Any, callspec: Any | None) -> str:
        arguments = []
        for argument in definition.argnames:
            if argument != "request":
                arguments.append(f"{argument}={self._value(argument)}")
                continue
            if callspec is None or name not in callspec.params:
                raise Refused(f"its fixture {name} asks for pytest's request")
            self.imports.append("types")
            literal = self._literal(callspec.params[name])
            if literal is None:
                raise Refused(f"the parameter of its fixture {name} cannot be written down")
            arguments.append(f"request=types.SimpleNamespace(param={literal})")
        self.helpers.append("fixture")
        self.imports.append("inspect")
        return f"fixture({', '.join([str(self._home(definition.func)), *arguments])})"

    def _home(self, function: Any) -> str:
        """Where a fixture's function can be had in the script, or "" if it is none of the subject's."""
        name = getattr(function, "__name__", "")
        module = sys.modules.get(getattr(function, "__module__", "") or "")
        file = getattr(function, "__code__", None) and function.__code__.co_filename
        if module is self.module and hasattr(module, name):
            return f"test.{name}"
        for index, conftest in enumerate(self.conftests):
            if file and Path(file) == self._root / conftest:
                return f"conftest_{index}.{name}"
        return ""

    def _parameter(self, name: str, callspec: Any) -> str:
        literal = self._literal(callspec.params[name])
        if literal is not None:
            return literal
        for mark in getattr(self.item.function, "pytestmark", ()):
            if mark.name == "parametrize" and name in _names(mark.args[0]):
                self.helpers.append("marked")
                return f"marked(test.{self.item.originalname}, {name!r}, {callspec.indices[name]})"
        raise Refused(f"its parameter {name} cannot be written down")

    def _literal(self, value: Any) -> str | None:
        """A Python expression for a value, or None."""
        if value is None or (isinstance(value, (bool, int, str, bytes)) and not isinstance(value, enum.Enum)):
            return repr(value)
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
        if type(value) in (tuple, list):
            return self._sequence(value)
        if type(value) is dict:
            pairs = [(self._literal(key), self._literal(each)) for key, each in value.items()]
            whole = all(part is not None for pair in pairs for part in pair)
            return "{" + ", ".join(f"{key}: {each}" for key, each in pairs) + "}" if whole else None
        return self._torch(value) or self._named(value)

    def _sequence(self, value: Any) -> str | None:
        parts = [self._literal(each) for each in value]
        if any(part is None for part in parts):
            return None
        inner = ", ".join(str(part) for part in parts)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(parts) == 1 else f"({inner})"

    def _torch(self, value: Any) -> str | None:
        torch = sys.modules.get("torch")
        if torch is None:
            return None
        kinds = tuple(getattr(torch, kind) for kind in ("dtype", "layout", "memory_format"))
        if isinstance(value, kinds):
            self.imports.append("torch")
            return str(value)
        if isinstance(value, torch.device):
            self.imports.append("torch")
            return f"torch.device({str(value)!r})"
        return None

    def _named(self, value: Any) -> str | None:
        """A value that the test file has a name for."""
        for name, held in vars(self.module).items():
            if held is value and name.isidentifier():
                return f"test.{name}"
            if isinstance(value, enum.Enum) and held is type(value):
                return f"test.{name}.{value.name}"
        return None

    # Files ---------------------------------------------------------------------------------------------

    def _find_conftests(self) -> list[str]:
        """The conftest.py files from the root down to the test, relative to the root."""
        folders = [self._root, *reversed(Path(self.module.__file__).resolve().parents)]
        found = [
            folder / "conftest.py"
            for folder in folders
            if folder == self._root or self._root in folder.parents
        ]
        return list(dict.fromkeys(self._relative(path) for path in found if path.is_file()))

    def _rootdir(self) -> str:
        """The folder that the module is imported from."""
        folder = Path(self.module.__file__).resolve().parent
        for _ in range(self.module.__name__.count(".")):
            folder = folder.parent
        return str(folder)

    def _relative(self, path: Path) -> str:
        return os.path.relpath(path, self._root)


def _names(argnames: Any) -> list[str]:
    return [name.strip() for name in argnames.split(",")] if isinstance(argnames, str) else list(argnames)


class Collector:
    """A pytest plugin that describes one item in place of running any."""

    def __init__(self, test: str) -> None:
        self._test = test
        self.told: dict[str, Any] = {"refused": "pytest could not collect it"}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {selection.short_id(item.nodeid): item for item in session.items}
        found = selection.matching(self._test, list(items))
        try:
            if len(found) != 1:
                raise Refused(f"the file has {len(found)} tests of that name")
            self.told = Call(items[found[0]]).describe()
        except Refused as refused:
            self.told = {"refused": str(refused)}
        return True


def main(request_file: str, out: str) -> None:
    """Describe the target test of a request."""
    request = read_request(Path(request_file))
    os.chdir(request.root)
    sys.path[:0] = [folder for folder in request.python_path if folder not in sys.path]
    sys.dont_write_bytecode = True
    collector = Collector(request.test)
    pytest.main(pytest_arguments(request), plugins=[collector])
    Path(out).write_text(json.dumps(collector.told), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
