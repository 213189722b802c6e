"""uv as a resolver: from what a cell asks for to exact versions of everything."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from repro.cells import Cell
from repro.engines import indexes as where
from repro.engines.indexes import Indexes
from repro.engines.pythons import uv_program
from repro.engines.wheels import for_resolver, local_wheel
from repro.errors import BuildError
from repro.stacks import stacks

RESOLVE_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Pin:
    """One package to install: an exact version, or a wheel of this machine."""

    name: str
    version: str
    wheel: Path | None = None
    sha256: str = ""

    @property
    def requirement(self) -> str:
        """`name==version`."""
        return f"{self.name}=={self.version}"


class Resolver:
    """uv's resolver for one cell's Python, with triton's version set above whatever torch pins."""

    def __init__(self, cell: Cell, configured: Indexes) -> None:
        self.cell = cell
        own_index = _pytorch_index(cell)
        local = local_wheel(configured.find_links, cell)
        self.torch = f"torch=={cell.torch}" + (f"+{cell.cuda}" if own_index else "")
        if local is not None:
            self.torch = f"torch=={local}"
        self.needs_pytorch = own_index is not None and local is None
        more = [own_index] if own_index and local is None and not configured.no_index else []
        self.own_index = own_index
        self.indexes = configured if configured.no_index else configured.only_reachable(more)

    def resolve(
        self, wanted: Sequence[str], prefer: Sequence[Pin] = (), there: Sequence[str] = ()
    ) -> list[Pin]:
        """Exact versions of `wanted` and all they need.

        Args:
            wanted: requirements.
            prefer: versions to keep to where they fit.
            there: names of packages that nothing needs, because the base holds them.

        Raises:
            BuildError: there is no such set.
        """
        with for_resolver(self.indexes.find_links) as (find_links, originals):
            indexes = replace(self.indexes, find_links=find_links)
            pins = self._compile(wanted, prefer, there, indexes)
        named = {pin: originals.get(pin.wheel.name) for pin in pins if pin.wheel}
        return [replace(pin, wheel=named.get(pin) or pin.wheel) for pin in pins]

    def _compile(
        self, wanted: Sequence[str], prefer: Sequence[Pin], there: Sequence[str], indexes: Indexes
    ) -> list[Pin]:
        # An override that never applies takes a package out of everybody's dependencies.
        overrides = [] if "triton" in there else [f"triton=={self.cell.triton}"]
        overrides += [f"{name} ; python_version < '3'" for name in there]
        with tempfile.TemporaryDirectory(prefix="repro-resolve-") as scratch:
            folder = Path(scratch)
            lock = folder / "pylock.toml"
            if prefer:  # uv keeps to the versions of the file that it is about to write
                lock.write_text(_preferences(prefer), encoding="utf-8")
            (folder / "wanted.in").write_text("\n".join(wanted) + "\n", encoding="utf-8")
            (folder / "overrides.in").write_text("\n".join(overrides) + "\n", encoding="utf-8")
            command = [
                uv_program(), "pip", "compile", "wanted.in", "--overrides", "overrides.in", "--quiet",
                "--no-header", "--no-annotate", "--format", "pylock.toml", "--output-file", str(lock),
                "--python-version", self.cell.python, "--python-platform", _platform(), "--no-config",
                "--only-binary", "torch", "--only-binary", "triton", *indexes.uv_flags(),
            ]  # fmt: skip
            self._run(command, folder)
            return _pins(tomllib.loads(lock.read_text(encoding="utf-8")))

    def _run(self, command: Sequence[str], folder: Path) -> None:
        env = {**os.environ, **self.indexes.environment(), "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}
        try:
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, timeout=RESOLVE_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise self._error(f"no answer within {RESOLVE_SECONDS:.0f} s") from None
        if done.returncode != 0:
            raise self._error(_reason(done.stderr))

    def _error(self, reason: str) -> BuildError:
        what = f"{self.cell.id}: no set of packages fits: {reason}"
        if self.needs_pytorch and self.own_index not in self.indexes.urls:
            return BuildError(
                what,
                why=f"the {self.cell.cuda} build of torch comes from {self.own_index}, "
                "which does not answer from here, and no folder of wheels has it",
                next_step=f"put its wheel for Python {self.cell.python} into a folder and name that in "
                "PIP_FIND_LINKS, or leave the cell out with --only",
            )
        if self.indexes.no_index:
            return BuildError(
                what,
                why="no package index answers from here, and the folders of wheels do not have it all",
                next_step="put the missing wheels into a folder and name that in PIP_FIND_LINKS",
            )
        return BuildError(what, next_step="`repro doctor` shows which indexes answer from here")


def _pytorch_index(cell: Cell) -> str | None:
    """Index of a build that PyPI does not have; None for the one that it has."""
    if cell.torch in stacks().torch:
        return stacks().wheel_index(cell.torch, cell.cuda)
    return f"{where.PYTORCH}/{cell.cuda}" if cell.cuda == "cpu" else None


def _platform() -> str:
    """uv's name for this machine's kind of Linux, as new as torch's wheels ask for."""
    return f"{platform.machine()}-manylinux_2_28"


def _preferences(pins: Sequence[Pin]) -> str:
    rows = [f'[[packages]]\nname = "{pin.name}"\nversion = "{pin.version}"\n' for pin in pins]
    return 'lock-version = "1.0"\ncreated-by = "uv"\n\n' + "\n".join(rows)


def _pins(lock: Mapping[str, object]) -> list[Pin]:
    packages = lock.get("packages")
    assert isinstance(packages, list)
    return [_pin(row) for row in packages]


def _pin(row: dict[str, object]) -> Pin:
    """A row of pylock.toml; `wheel` is set where the wheel is a file of this machine."""
    wheels = row.get("wheels")
    first: dict[str, object] = wheels[0] if isinstance(wheels, list) and wheels else {}
    hashes = first.get("hashes")
    sha256 = str(hashes.get("sha256", "")) if isinstance(hashes, dict) else ""
    url = str(first.get("url") or first.get("path") or "")
    parts = urlsplit(url)
    local = Path(unquote(parts.path)) if url and parts.scheme in ("", "file") else None
    name = canonicalize_name(str(row["name"]))
    return Pin(name=name, version=str(row["version"]), wheel=local, sha256=sha256)


def _reason(stderr: str) -> str:
    """uv's explanation as one sentence, without its drawing."""
    text = re.sub(r"[│╰├─▶×]+", " ", stderr)
    lines = [
        line.strip() for line in text.splitlines() if not line.lstrip().startswith(("warning:", "hint:"))
    ]
    sentence = re.sub(r"\s+", " ", " ".join(lines)).strip()
    sentence = re.sub(r"^(error: |cause: |No solution found when resolving dependencies:? )+", "", sentence)
    return sentence.split(" hint: ")[0][:600] or "uv gave no reason"
