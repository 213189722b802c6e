"""The command line that pytest gets: the subject's own configuration, less what concerns whole runs."""

from __future__ import annotations

import configparser
import importlib
import importlib.util
import shlex
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest

from .request import Request

_FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


def pytest_arguments(request: Request) -> List[str]:
    """Arguments for `pytest.main` that collect the request's test file and nothing else."""
    found = _configuration(request)
    kept = list(_kept(found[1])) if found else []
    if not any(argument.startswith("--import-mode") for argument in kept):
        kept.append("--import-mode=prepend")
    version = tuple(int(part) for part in pytest.__version__.split(".")[:2] if part.isdigit())
    retention = ["-o", "tmp_path_retention_policy=failed"] if version >= (7, 3) else []
    return [
        *(["-c", str(found[0])] if found else []),
        f"--rootdir={request.root}",
        *("-o", "addopts=", "-o", "required_plugins=", *retention),
        *("-p", "no:cacheprovider", "-p", "no:randomly"),
        *("-q", "--no-header", "--tb=short", "--runxfail"),
        *kept,
        *_lenient(version),
        *_root_conftest(request),
        str(request.test_file),
    ]


def _lenient(version: Tuple[int, ...]) -> Iterator[str]:
    """Options and marks of plugins that are not here are no errors, however strict the subject is."""
    for warning in ("PytestConfigWarning", "PytestUnknownMarkWarning"):
        yield from ("-W", f"ignore::pytest.{warning}")
    if version >= (9, 0):
        for option in ("strict", "strict_config", "strict_markers"):
            yield from ("-o", f"{option}=false")


def _root_conftest(request: Request) -> Iterator[str]:
    """pytest reads the conftest.py files above a test only: a file outside would miss the subject's own."""
    conftest = request.root / "conftest.py"
    if conftest.is_file() and request.root.resolve() not in request.test_file.resolve().parents:
        yield from ("-p", "conftest")


def _configuration(request: Request) -> Optional[Tuple[Path, str]]:
    """The nearest configuration file from the test up to the root, or the root's own, and its addopts."""
    root = request.root.resolve()
    folders = [folder for folder in request.test_file.resolve().parents if root in (folder, *folder.parents)]
    for folder in [*folders, root]:
        for name in _FILES:
            options = _options(folder / name)
            if options is not None:
                return folder / name, _joined(options.get("addopts", ""))
    return None


def _options(path: Path) -> Optional[Dict[str, Any]]:
    """The pytest section of a configuration file; None where it has none."""
    if not path.is_file():
        return None
    try:
        if path.suffix == ".toml":
            return _toml_options(path)
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.read(path, encoding="utf-8")
    except (ValueError, configparser.Error, UnicodeError):
        return {}
    section = "tool:pytest" if path.name == "setup.cfg" else "pytest"
    if parser.has_section(section):
        return dict(parser.items(section))
    return {} if path.name in ("pytest.ini", ".pytest.ini") else None


def _toml_options(path: Path) -> Optional[Dict[str, Any]]:
    for module in ("tomllib", "tomli"):  # tomli comes with pytest where Python has no tomllib
        if importlib.util.find_spec(module):
            tool = importlib.import_module(module).loads(path.read_text(encoding="utf-8")).get("tool", {})
            options = tool.get("pytest", {})
            found = options.get("ini_options", options) if options else None
            return found if isinstance(found, dict) else None
    return None


def _joined(addopts: Any) -> str:
    return " ".join(shlex.quote(str(one)) for one in addopts) if isinstance(addopts, list) else str(addopts)


def _kept(addopts: str) -> Iterator[str]:
    """The options that a test may need to work; all others, coverage and reports say, concern whole runs."""
    words = iter(shlex.split(addopts))
    for word in words:
        flag = next((flag for flag in ("-p", "-W", "--import-mode") if word.startswith(flag)), None)
        if flag is None:
            continue
        value = word[len(flag) :].lstrip("=") or next(words, "")
        if flag == "-p" and not value.startswith("no:") and not _importable(value):
            continue
        yield from (f"{flag}={value}",) if flag == "--import-mode" else (flag, value)


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
