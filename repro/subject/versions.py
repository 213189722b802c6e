"""A package's version, read from where its build backend would take it; nothing is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from repro.subject.declared import BuildFiles, at, is_inside, literal
from repro.subject.layout import NO_PACKAGES
from repro.subject.parsing import parse
from repro.subject.tagged import takes_tags

UNKNOWN = "0.0.0"
"""Of a package whose version comes from code, or from the tags of a repository that is not there."""

_WRITTEN = re.compile(
    r"^\s*(?:__version__|VERSION|version)(?:\s*:\s*str)?\s*=\s*['\"]v?([^'\"]+)['\"]", re.MULTILINE
)
_MODULES = ("__init__", "_version", "version", "__version__", "__about__", "_about")
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_FOLLOWED = 3


def version_of(files: BuildFiles, root: Path, folders: Sequence[str], name: str, tagged: str = "") -> str:
    """The version as it is written, or as the tags have it, or `UNKNOWN`.

    Args:
        files: the build files in `root`.
        root: the copy.
        folders: that packages lie in, relative to `root`.
        name: the distribution's.
        tagged: what git's tags say: first where the package's version comes from there, last elsewhere.
    """
    written = _candidates(files, [root / folder for folder in folders], root, name)
    for text in chain((tagged,) if takes_tags(files) else (), written, (tagged,)):
        try:
            Version(text)
        except InvalidVersion:
            continue
        return text
    return UNKNOWN


def _candidates(files: BuildFiles, places: Sequence[Path], root: Path, name: str) -> Iterator[str]:
    dynamic = files.tool("setuptools", "dynamic", "version")
    for said in (
        at(files.pyproject, "project", "version"),
        files.tool("poetry", "version"),
        *((f"attr:{at(dynamic, 'attr')}",) if at(dynamic, "attr") else ()),
        *(f"file:{path}" for path in _list(at(dynamic, "file"))),
        *(f"file:{path}" for path in _list(files.tool("hatch", "version", "path"))),
        *(f"file:{path}" for path in _list(files.tool("pdm", "version", "path"))),
        at(files.config, "metadata", "version"),
        files.setup.get("version"),
    ):
        if isinstance(said, str):
            yield from _evaluated(said.strip(), places, root)
    package = name.replace("-", "_").replace(".", "_")
    module = files.tool("flit", "module", "name") or files.tool("flit", "metadata", "module") or package
    for place in places:
        for path in _modules(place, str(module)):
            yield from _attribute(path, "__version__", _FOLLOWED)


def _list(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, str)]


def _evaluated(said: str, places: Sequence[Path], root: Path) -> Iterator[str]:
    """A version as setup.cfg writes it: itself, `attr: package.name` or `file: path`."""
    kind, _, rest = said.partition(":")
    if kind == "attr":
        module, _, attribute = rest.strip().rpartition(".")
        for place in (*places, root):
            for path in _sources(place, module):
                yield from _attribute(path, attribute, _FOLLOWED)
    elif kind == "file":
        if is_inside(rest.strip()):
            yield from _in_file(root / rest.strip())
    else:
        yield said


def _sources(place: Path, module: str) -> list[Path]:
    """The files that may hold a dotted module."""
    if not _DOTTED.fullmatch(module):
        return []
    path = place.joinpath(*module.split("."))
    return [path / "__init__.py", path.with_name(f"{path.name}.py")]


def _in_file(path: Path) -> Iterator[str]:
    text = _text(path)
    found = _WRITTEN.search(text)
    yield found[1] if found else text.strip()


def _modules(place: Path, package: str) -> Iterator[Path]:
    """The modules that a package keeps its version in, its own ones first."""
    yield from _sources(place, package)
    own = place.joinpath(*package.split("."))
    folders = sorted(path.parent for path in place.glob("*/__init__.py"))
    others = [folder for folder in folders if folder.name not in NO_PACKAGES]
    for folder in [own] if _DOTTED.fullmatch(package) and own.is_dir() else others[:1]:
        yield from (folder / f"{module}.py" for module in _MODULES)


def _attribute(path: Path, name: str, depth: int) -> Iterator[str]:
    """The string that a module assigns to a name, or imports under it from a module beside it."""
    try:
        module = parse(_text(path))
    except (SyntaxError, ValueError):
        return
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in _names(node):
            value = None if node.value is None else literal(node.value)
            if isinstance(value, str):
                yield value
            elif isinstance(value, tuple | list):
                yield ".".join(map(str, value))
        elif isinstance(node, ast.ImportFrom) and node.level == 1 and node.module and depth:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    beside = path.parent / f"{node.module.replace('.', '/')}.py"
                    yield from _attribute(beside, alias.name, depth - 1)


def _names(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
