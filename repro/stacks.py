"""Which torch pins which triton and CUDA, and which combinations cannot exist: questions to stacks.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

FILE = Path(__file__).with_name("stacks.yaml")


@lru_cache(maxsize=4096)
def version(text: str) -> Version:
    """`packaging`'s Version, parsed once."""
    return Version(text)


@dataclass(frozen=True, kw_only=True)
class Torch:
    """A release of torch.

    Args:
        triton: release that its CUDA builds pin.
        default: CUDA build on PyPI.
        others: CUDA builds on PyTorch's own index.
        python: first and last minor version with a wheel.
    """

    triton: str
    default: str
    others: tuple[str, ...]
    python: tuple[str, str]

    @property
    def builds(self) -> tuple[str, ...]:
        """Every build, the CPU one first."""
        return ("cpu", self.default, *self.others)


@dataclass(frozen=True, kw_only=True)
class Package:
    """A pip requirement that some cells need.

    Args:
        needs: the requirement.
        triton: triton releases that it is for.
        interpreter_only: whether it is for cells without a GPU alone.
        why: the reason, for messages.
    """

    needs: Requirement
    triton: SpecifierSet
    interpreter_only: bool
    why: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Stacks:
    """All of stacks.yaml; two of them are never equal, so that answers can be cached.

    Args:
        first_numpy: oldest numpy with a wheel, by Python minor version.
        refused: why the kit refuses a Python minor version, by that version.
        torch: releases, oldest first.
        triton: first and last Python minor version with a wheel, by release, oldest first.
        ptxas: releases of `ptxas_package` whose ptxas can stand in for triton's own.
        ptxas_package: name on PyPI.
        index: where builds that PyPI lacks come from, with `{build}` in it.
        packages: requirements beside torch and triton.
    """

    first_numpy: Mapping[str, str]
    refused: Mapping[str, str]
    torch: Mapping[str, Torch]
    triton: Mapping[str, tuple[str, str]]
    ptxas: tuple[str, ...]
    ptxas_package: str
    index: str
    packages: tuple[Package, ...]

    @lru_cache(maxsize=1)  # noqa: B019 - the one instance lives as long as the process
    def builds(self) -> tuple[str, ...]:
        """Every build of any torch, `cpu` first, then from the oldest CUDA on."""
        return tuple(sorted({build for torch in self.torch.values() for build in torch.builds}))

    def known(self, axis: str) -> tuple[str, ...]:
        """Every value that an axis (`python`, `torch`, `triton`, `cuda`, `ptxas`) can have, oldest first."""
        known: dict[str, tuple[str, ...]] = {
            "python": tuple(self.first_numpy),
            "torch": tuple(self.torch),
            "triton": tuple(self.triton),
            "cuda": self.builds(),
            "ptxas": self.ptxas,
        }
        return known[axis]

    def newest_ptxas(self, line: str) -> str:
        """The newest release of a line such as "12.8"; anything else as it is."""
        return next((each for each in reversed(self.ptxas) if each.startswith(f"{line}.")), line)

    def wheel_index(self, torch: str, build: str) -> str | None:
        """URL of the index that has this build of torch, or None where PyPI has it."""
        return None if build == self.torch[torch].default else self.index.format(build=build)

    @lru_cache(maxsize=256)  # noqa: B019 - the one instance lives as long as the process
    def requirements(self, triton: str, build: str) -> tuple[str, ...]:
        """The pip requirements that a cell needs beside torch and triton, one for each package."""
        merged: dict[str, SpecifierSet] = {}
        for package in self._packages(triton, build):
            name = package.needs.name
            merged[name] = merged.get(name, SpecifierSet()) & package.needs.specifier
        return tuple(f"{name}{bound}" for name, bound in merged.items())

    def impossible(
        self, *, python: str, torch: str, triton: str, build: str, ptxas: str | None
    ) -> str | None:
        """Why no such cell can exist, or None where it can.

        Args:
            python: minor version that stacks.yaml knows.
            torch: release that stacks.yaml knows.
            triton: release that stacks.yaml knows.
            build: such as "cu126" or "cpu".
            ptxas: release, or None for the one inside triton's wheel.
        """
        release = self.torch[torch]
        if python in self.refused:
            return self.refused[python]
        if build not in release.builds:
            return f"torch {torch} has no {build} build; it has {', '.join(release.builds)}"
        if not _within(python, release.python):
            return _no_wheel("torch", torch, python, release.python)
        if not _within(python, self.triton[triton]):
            return _no_wheel("triton", triton, python, self.triton[triton])
        if ptxas is not None and build == "cpu":
            return "ptxas compiles for a GPU, and a cpu cell has none"
        return self._no_numpy(python, triton, build)

    def _packages(self, triton: str, build: str) -> list[Package]:
        return [
            package
            for package in self.packages
            if package.triton.contains(version(triton)) and (build == "cpu" or not package.interpreter_only)
        ]

    @lru_cache(maxsize=1024)  # noqa: B019 - the one instance lives as long as the process
    def _no_numpy(self, python: str, triton: str, build: str) -> str | None:
        oldest = self.first_numpy[python]
        for package in self._packages(triton, build):
            if package.needs.name == "numpy" and not package.needs.specifier.contains(version(oldest)):
                return (
                    f"triton {triton} under its interpreter needs {package.needs} ({package.why}), "
                    f"and Python {python} has wheels from numpy {oldest} on"
                )
        return None


def _within(python: str, span: tuple[str, str]) -> bool:
    return version(span[0]) <= version(python) <= version(span[1])


def _no_wheel(name: str, release: str, python: str, span: tuple[str, str]) -> str:
    return f"{name} {release} has no wheel for Python {python}; it has them for {span[0]} to {span[1]}"


@cache
def stacks() -> Stacks:
    """The shipped stacks.yaml, read once."""
    return parse(FILE.read_text(encoding="utf-8"))


def parse(text: str) -> Stacks:
    """Read the text of a stacks.yaml, which is the kit's own file and taken as correct."""
    data: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return Stacks(
        first_numpy={python: row["first_numpy"] for python, row in data["python"].items()},
        refused={python: row["refused"] for python, row in data["python"].items() if "refused" in row},
        torch={release: _torch(row) for release, row in data["torch"].items()},
        triton={release: _span(row["python"]) for release, row in data["triton"].items()},
        ptxas=tuple(data["ptxas"]["releases"]),
        ptxas_package=data["ptxas"]["package"],
        index=data["pytorch_index"],
        packages=tuple(_package(row) for row in data["packages"]),
    )


def _torch(row: dict[str, Any]) -> Torch:
    return Torch(
        triton=row["triton"],
        default=row["default"],
        others=tuple(row["others"]),
        python=_span(row["python"]),
    )


def _span(pair: list[str]) -> tuple[str, str]:
    first, last = pair
    return first, last


def _package(row: dict[str, str]) -> Package:
    return Package(
        needs=Requirement(row["needs"]),
        triton=SpecifierSet(row.get("triton", "")),
        interpreter_only=row.get("where") == "interpreter",
        why=row["why"],
    )
