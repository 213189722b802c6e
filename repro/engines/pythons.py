"""The Python interpreters of this machine, and what each of them holds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

_ASK = """
import json, sys, sysconfig
from importlib import metadata
held = {}
for found in metadata.distributions():
    name = found.metadata["Name"]
    if name:
        held.setdefault(name.lower().replace("_", "-"), found.version)
header = sysconfig.get_path("include") + "/Python.h"
print(json.dumps(["%d.%d" % sys.version_info[:2], sys.base_prefix, sys.prefix, header, held]))
"""


@dataclass(frozen=True, kw_only=True)
class PythonHere:
    """An interpreter of this machine.

    Args:
        path: the program.
        minor: version, such as "3.12".
        prefix: where its standard library lives.
        in_venv: whether it belongs to a virtual environment.
        header: path of its Python.h, whether that is there or not.
        held: packages installed in it, by normalised name.
    """

    path: Path
    minor: str
    prefix: Path
    in_venv: bool = False
    header: Path = Path("/")
    held: dict[str, str] = field(default_factory=dict, hash=False)


@lru_cache(maxsize=32)
def look_at(path: Path) -> PythonHere | None:
    """Ask an interpreter for its version and packages; None where it does not run."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [str(path), "-c", _ASK]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=30, env=env, check=True)
        minor, base, prefix, header, held = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return PythonHere(
        path=path, minor=minor, prefix=Path(base), in_venv=base != prefix, header=Path(header), held=held
    )


def holding(minor: str, package: str) -> PythonHere | None:
    """The `python3` on PATH where it is of that minor version and holds a package.

    It may belong to a virtual environment: that is how machines are often handed out with a torch.
    """
    kit = Path(sys.prefix) / "bin"
    path = os.pathsep.join(part for part in os.get_exec_path() if Path(part) != kit)
    on_path = shutil.which("python3", path=path)
    here = look_at(Path(on_path)) if on_path else None
    if here is None or here.minor != minor:
        return None
    return here if package in here.held else None


def find(minor: str) -> list[PythonHere]:
    """Interpreters of that minor version outside virtual environments; the one that runs the kit first."""
    found: list[PythonHere] = []
    for path in _candidates(minor):
        here = look_at(path)
        if here and here.minor == minor and not here.in_venv and here.prefix not in [p.prefix for p in found]:
            found.append(here)
    return found


def _candidates(minor: str) -> Iterator[Path]:
    base = Path(sys.base_prefix) / "bin" / f"python{minor}"
    if base.exists():
        yield base
    for name in (f"python{minor}", "python3"):
        if on_path := shutil.which(name):
            yield Path(on_path)
    if by_uv := uv_finds(minor):
        yield by_uv
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{minor}.*/bin/python{minor}"), reverse=True)


def uv_finds(minor: str) -> Path | None:
    """The interpreter that uv would take for that version, among those that are here."""
    command = [uv_program(), "python", "find", "--no-project", "--system", "--no-python-downloads", minor]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, cwd="/")
    except (OSError, subprocess.SubprocessError):
        return None
    return Path(asked.stdout.strip())


def versions_here() -> list[str]:
    """Minor versions of every interpreter that uv sees, oldest first."""
    command = [uv_program(), "python", "list", "--only-installed", "--no-python-downloads",
               "--output-format", "json"]  # fmt: skip
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, cwd="/")
        rows = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        rows = []
    minors = {
        ".".join(row["version"].split(".")[:2]) for row in rows if row.get("implementation") == "cpython"
    }
    minors.add(f"{sys.version_info.major}.{sys.version_info.minor}")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    minors |= {path.name.removeprefix("python") for path in pyenv.glob("versions/3.*/bin/python3.*[0-9]")}
    return sorted(minors, key=lambda minor: [int(part) for part in minor.split(".")])


@lru_cache(maxsize=1)
def uv_program() -> str:
    """The uv that came with the kit, else the one on PATH.

    Raises:
        FileNotFoundError: there is none.
    """
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
        if found is None:
            raise FileNotFoundError("uv is not installed") from None
        return found
