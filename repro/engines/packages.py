"""From a cell to the packages that are installed in it, the same ones in every engine.

Versions are resolved once, on this machine, by uv: an image build or a virtual environment then installs
exact pins without looking at dependencies. That is how a crossed triton gets past torch's own pin, how local
wheels reach a build that sees nothing of this machine, and why every builder makes the same image.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from repro.cells import Cell
from repro.engines import indexes as where
from repro.engines.indexes import Indexes
from repro.engines.pythons import look_at, uv_program
from repro.errors import BuildError, ReproError
from repro.stacks import stacks

RESOLVE_SECONDS = 120.0
INSTALL_SECONDS = 1800.0
PTXAS_PACKAGE = "nvidia-cuda-nvcc-cu12"
PTXAS_INSIDE = "nvidia/cuda_nvcc/bin/ptxas"
"""Where that package has the program, below the folder it is installed into."""


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


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What goes into a cell, in the order of its layers.

    Args:
        torch: torch and what it needs, without triton: the layer that cells share.
        cell: triton, pytest and everything else.
        ptxas: the package that brings another ptxas, or None.
        indexes: where pins without a wheel of this machine come from.
    """

    torch: tuple[Pin, ...]
    cell: tuple[Pin, ...]
    ptxas: Pin | None = None
    indexes: Indexes = field(default_factory=Indexes)


def plan(
    cell: Cell,
    requirements: Sequence[str] = (),
    held: Mapping[str, str] | None = None,
    prefer: Sequence[Pin] = (),
) -> Plan:
    """Resolve everything that a cell needs.

    Args:
        cell: the cell.
        requirements: further pip requirements of the subject.
        held: packages that the base brings along already; not installed again where their version fits.
        prefer: versions to keep to where they fit.

    Raises:
        BuildError: a package or version is on no index and in no folder that can be reached.
    """
    resolver = _Resolver(cell, where.configured())
    held = held or {}
    if held.get("torch", "").partition("+")[0] == cell.torch:
        return resolver.beside(held, requirements)
    torch = resolver.resolve([resolver.torch], prefer)
    whole = resolver.resolve(
        [resolver.torch, f"triton=={cell.triton}", "pytest", *cell.packages, *requirements], [*torch, *prefer]
    )
    shared = tuple(pin for pin in torch if pin.name != "triton")
    rest = tuple(pin for pin in whole if pin not in shared)
    return Plan(torch=shared, cell=rest, ptxas=resolver.ptxas(), indexes=resolver.indexes)


def direct_requirements(cell: Cell, requirements: Sequence[str] = ()) -> list[str]:
    """What is asked for by name; part of the hash that decides whether a cell stands."""
    ptxas = [] if cell.ptxas is None else [f"{PTXAS_PACKAGE}=={cell.ptxas}"]
    named = [f"torch=={cell.torch}+{cell.cuda}", f"triton=={cell.triton}", "pytest", *ptxas]
    return [*named, *sorted(cell.packages), *sorted(requirements)]


class _Resolver:
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

    def resolve(self, wanted: Sequence[str], prefer: Sequence[Pin] = ()) -> list[Pin]:
        """Exact versions of `wanted` and all they need.

        Raises:
            BuildError: there is no such set.
        """
        with tempfile.TemporaryDirectory(prefix="repro-resolve-") as scratch:
            folder = Path(scratch)
            lock = folder / "pylock.toml"
            if prefer:  # uv keeps to the versions of the file that it is about to write
                lock.write_text(_preferences(prefer), encoding="utf-8")
            (folder / "wanted.in").write_text("\n".join(wanted) + "\n", encoding="utf-8")
            (folder / "triton.in").write_text(f"triton=={self.cell.triton}\n", encoding="utf-8")
            command = [
                uv_program(), "pip", "compile", "wanted.in", "--overrides", "triton.in", "--quiet",
                "--no-header", "--no-annotate", "--format", "pylock.toml", "--output-file", str(lock),
                "--python-version", self.cell.python, "--python-platform", _platform(), "--no-config",
                "--only-binary", "torch", "--only-binary", "triton", *self.indexes.uv_flags(),
            ]  # fmt: skip
            self._run(command, folder)
            return _pins(tomllib.loads(lock.read_text(encoding="utf-8")))

    def beside(self, held: Mapping[str, str], requirements: Sequence[str]) -> Plan:
        """What is missing beside a torch that the base holds; its own dependencies count as there.

        Only named packages are looked at: such a base is for machines that reach no index.

        Raises:
            BuildError: a missing package is nowhere.
        """
        named = [f"triton=={self.cell.triton}", "pytest", *self.cell.packages, *requirements]
        missing = [text for text in named if not _satisfied(Requirement(text), held)]
        pins = self.resolve(missing) if missing else []
        rest = tuple(pin for pin in pins if held.get(pin.name) != pin.version)
        return Plan(torch=(), cell=rest, ptxas=self.ptxas(), indexes=self.indexes)

    def ptxas(self) -> Pin | None:
        """The package with the ptxas that the cell asks for.

        Raises:
            BuildError: it is nowhere.
        """
        if self.cell.ptxas is None:
            return None
        pins = self.resolve([f"{PTXAS_PACKAGE}=={self.cell.ptxas}"])
        return next(pin for pin in pins if pin.name == PTXAS_PACKAGE)

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


def local_wheel(find_links: Iterable[str], cell: Cell) -> str | None:
    """Version, with its build, of a torch wheel in a local folder that fits the cell's Python."""
    tag = "cp" + cell.python.replace(".", "")
    for place in find_links:
        folder = Path(unquote(urlsplit(place).path) if place.startswith("file:") else place)
        for build in (f"+{cell.cuda}", f"%2B{cell.cuda}"):
            if any(folder.glob(f"torch-{cell.torch}{build}-{tag}-*_{platform.machine()}.whl")):
                return f"{cell.torch}+{cell.cuda}"
    return None


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


def _satisfied(requirement: Requirement, held: Mapping[str, str]) -> bool:
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    found = held.get(canonicalize_name(requirement.name))
    return found is not None and requirement.specifier.contains(Version(found), prereleases=True)


def _reason(stderr: str) -> str:
    """uv's explanation as one sentence, without its drawing."""
    text = re.sub(r"[│╰├─▶×]+", " ", stderr)
    lines = [
        line.strip() for line in text.splitlines() if not line.lstrip().startswith(("warning:", "hint:"))
    ]
    sentence = re.sub(r"\s+", " ", " ".join(lines)).strip()
    sentence = re.sub(r"^(error: |cause: |No solution found when resolving dependencies:? )+", "", sentence)
    return sentence.split(" hint: ")[0][:600] or "uv gave no reason"


def unreadable_by_uv(wheel: Path) -> bool:
    """Whether a wheel is packed with LZMA, which pip reads and uv does not."""
    with zipfile.ZipFile(wheel) as archive:
        return any(entry.compress_type == zipfile.ZIP_LZMA for entry in archive.infolist())


def main(arguments: Sequence[str] | None = None) -> int:
    """Set up an environment that is there: `install --torch X --cuda cpu --triton Y --python PATH`."""
    import argparse
    import sys

    parser = argparse.ArgumentParser(prog="python -m repro.engines.packages", description=main.__doc__)
    parser.add_argument("command", choices=["install"])
    for name in ("torch", "cuda", "triton"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--python", type=Path, required=True, help="interpreter of the environment")
    given = parser.parse_args(arguments)
    try:
        _install(given.torch, given.cuda, given.triton, given.python)
    except ReproError as error:
        lines = [f"error: {error.what}", error.why and f"why: {error.why}", error.next_step]
        print("\n".join(line for line in lines if line), file=sys.stderr)
        return int(error.exit_code)
    return 0


def _install(torch: str, cuda: str, triton: str, python: Path) -> None:
    """Add torch, triton and what they need to an environment; what is there and fits stays.

    Raises:
        BuildError: no such interpreter, or a package is nowhere.
    """
    from repro.engines.installer import Installer

    here = look_at(python.absolute())
    if here is None:
        raise BuildError(f"{python} does not run", next_step="make clean, then the same command again")
    release = stacks().torch.get(torch)
    cell = Cell(
        python=here.minor,
        torch=torch,
        triton=triton,
        cuda=cuda,
        pinned_triton=release.triton if release else triton,
        packages=stacks().requirements(triton, cuda),
    )
    there = [Pin(name=name, version=version) for name, version in here.held.items()]
    wanted = plan(cell, prefer=there)
    pins = [pin for pin in (*wanted.torch, *wanted.cell) if here.held.get(pin.name) != pin.version]
    handle, name = tempfile.mkstemp(prefix="repro-install-", suffix=".log")
    os.close(handle)
    deadline = time.monotonic() + INSTALL_SECONDS
    installer = Installer(uv_program(), python.absolute(), wanted.indexes, Path(name), deadline)
    installer.install(cell, pins)
    Path(name).unlink()  # kept where the installation failed: the error names it


if __name__ == "__main__":
    raise SystemExit(main())
