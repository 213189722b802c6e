"""Names of images: each holds the hash of what is asked for, so that a name that stands needs no build."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from repro.cells import Cell
from repro.engines import packages

LABEL = "io.github.repro-kit"
BASE_IMAGE_VARIABLE = "REPRO_BASE_IMAGE"
"""Environment variable that names the image to begin with, instead of the public one."""


def resources() -> Path:
    """The kit's docker folder: beside the sources, or inside an installed kit."""
    packed = Path(__file__).parent.parent / "_resources" / "docker"
    return packed if packed.is_dir() else Path(__file__).parents[2] / "docker"


def digest(parts: object) -> str:
    """A hash of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def scripts() -> list[str]:
    """The text of what builds images: a changed script makes other images."""
    return [(resources() / name).read_text(encoding="utf-8") for name in ("Dockerfile", "step.py")]


def base_tag(cell: Cell) -> str:
    """Name of the image with the cell's Python."""
    own = os.environ.get(BASE_IMAGE_VARIABLE, "")
    return "repro-base:" + digest([scripts(), platform.machine(), cell.python, cell.on_gpu, own])[:16]


def torch_tag(cell: Cell) -> str:
    """Name of the image with the cell's torch."""
    return "repro-torch:" + digest([base_tag(cell), cell.torch, cell.cuda])[:16]


def cell_tag(cell: Cell, requirements: Sequence[str]) -> str:
    """Name of the cell's image: the same for everything that asks for the same packages."""
    return "repro-cell:" + digest([torch_tag(cell), packages.direct_requirements(cell, requirements)])[:16]
