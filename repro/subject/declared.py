"""What a package's build files declare: its name, layout and entry points; nothing is executed."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.subject.parsing import parse

Groups = dict[str, dict[str, str]]
"""Entry points: by group and name, what they point to."""


@dataclass(frozen=True, kw_only=True)
class BuildFiles:
    """The build files of a folder, parsed; empty where they are missing or broken.

    Args:
        pyproject: pyproject.toml.
        config: setup.cfg, by section and key.
        setup: literal arguments of setup.py's call of `setup`.
    """

    pyproject: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    setup: Mapping[str, Any] = field(default_factory=dict)

    def tool(self, *keys: str) -> Any:
        """A value below `[tool]` of pyproject.toml, or None."""
        return at(self.pyproject, "tool", *keys)


def read_build_files(root: Path) -> BuildFiles:
    """Parse the build files at the top of a folder."""
    return BuildFiles(
        pyproject=_toml(root / "pyproject.toml"),
        config=_config(root / "setup.cfg"),
        setup=_setup(root / "setup.py"),
    )


def at(data: Any, *keys: str) -> Any:
    """The value below nested keys, or None where the way does not lead that far."""
    for key in keys:
        if not isinstance(data, Mapping):
            return None
        data = data.get(key)
    return data


def name_of(files: BuildFiles) -> str | None:
    """The distribution's name, or None where no build file says it literally."""
    named = (
        at(files.pyproject, "project", "name"),
        files.tool("poetry", "name"),
        files.tool("flit", "metadata", "dist-name"),
        files.tool("flit", "metadata", "module"),
        at(files.config, "metadata", "name"),
        files.setup.get("name"),
    )
    return next((name for name in named if isinstance(name, str) and name), None)


def package_folders(files: BuildFiles) -> list[str]:
    """Folders that packages are taken from, as far as the build files say so; `.` is left out."""
    where = files.tool("setuptools", "packages", "find", "where")
    wheel = files.tool("hatch", "build", "targets", "wheel")
    included = files.tool("poetry", "packages")
    config = at(files.config, "options", "package_dir") or ""
    said = [
        *(where if isinstance(where, list) else ()),
        at(files.tool("setuptools", "package-dir"), ""),
        files.tool("pdm", "build", "package-dir"),
        *(_parent(path) for path in _strings(at(wheel, "packages"))),
        *(at(entry, "from") for entry in (included if isinstance(included, list) else ())),
        *(line.partition("=")[2].strip() for line in config.splitlines() if line.strip().startswith("=")),
        at(files.config, "options.packages.find", "where"),
        at(files.setup.get("package_dir"), ""),
    ]
    folders = (text.strip().removeprefix("./").rstrip("/") for text in said if isinstance(text, str))
    return list(dict.fromkeys(folder for folder in folders if is_inside(folder)))


def is_inside(path: str) -> bool:
    """Whether a relative path names something below the folder that it starts from."""
    return path not in ("", ".") and not path.startswith("/") and ".." not in path.split("/")


def entry_points(files: BuildFiles) -> Groups:
    """Entry points of every group, scripts aside."""
    project = at(files.pyproject, "project", "entry-points")
    groups: Groups = {}
    for source in (files.tool("poetry", "plugins"), project, _lines(files), files.setup.get("entry_points")):
        for group, points in (source if isinstance(source, Mapping) else {}).items():
            groups.setdefault(str(group), {}).update(_points(points))
    return {group: points for group, points in groups.items() if points}


def _points(points: Any) -> dict[str, str]:
    """From a table, or from lines such as `name = package.module:attribute`."""
    if isinstance(points, str):
        points = points.splitlines()
    if isinstance(points, list):
        pairs = (line.partition("=") for line in points if isinstance(line, str))
        points = {name.strip(): value.strip() for name, _, value in pairs}
    if not isinstance(points, Mapping):
        return {}
    return {name: value for name, value in points.items() if isinstance(value, str) and name and value}


def _lines(files: BuildFiles) -> Mapping[str, str]:
    return files.config.get("options.entry_points", {})


def _parent(path: str) -> str:
    return path.strip("/").rpartition("/")[0]


def _strings(value: Any) -> Iterator[str]:
    return (text for text in (value if isinstance(value, list) else ()) if isinstance(text, str))


def _toml(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _config(path: Path) -> Mapping[str, Mapping[str, str]]:
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, ConfigParserError):
        return {}
    return {section: dict(parser[section]) for section in parser.sections()}


def _setup(path: Path) -> Mapping[str, Any]:
    try:
        module = parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    constants = dict(_constants(module))
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and _is_setup(node.func)]
    arguments: dict[str, Any] = {}
    for keyword in calls[-1].keywords if calls else ():
        if isinstance(keyword.value, ast.Name):
            arguments[keyword.arg or ""] = constants.get(keyword.value.id)
        else:
            arguments[keyword.arg or ""] = literal(keyword.value)
    return arguments


def _is_setup(function: ast.expr) -> bool:
    return ast.unparse(function) in ("setup", "setuptools.setup", "distutils.core.setup")


def _constants(module: ast.Module) -> Iterator[tuple[str, Any]]:
    for node in module.body:
        if isinstance(node, ast.Assign):
            yield from ((name.id, literal(node.value)) for name in node.targets if isinstance(name, ast.Name))


def literal(node: ast.expr) -> Any:
    """The value of a literal, or None for anything that would have to be executed."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
