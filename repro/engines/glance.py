"""What a plan needs to know of an engine: which one would run, and which cells stand.

Asks the docker command once. To load the engine's library and to look for a builder takes longer than a whole
plan may.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from repro.cells import Cell
from repro.engines.select import create
from repro.engines.tags import LABEL, cell_tag

Present = Callable[[Cell, Sequence[str]], bool]
"""Whether a cell can run without a build, for the subject's requirements."""

SECONDS = 5.0


def glance(name: str, *, state: Path) -> tuple[str, Present]:
    """Name of the engine that `name` stands for, and what is present in it.

    Raises:
        NotReadyError: `docker` was asked for by name and does not answer.
    """
    if name in ("auto", "docker"):
        images = _images()
        if images is not None:
            return "docker", lambda cell, requirements: cell_tag(cell, requirements) in images
        name = "venv" if name == "auto" else name
    engine = create(name, state=state)
    return engine.name, engine.present


def _images() -> set[str] | None:
    """Names of the kit's images; None where no docker command or no engine answers."""
    program = shutil.which("docker")
    if program is None:
        return None
    command = [
        program,
        "image",
        "ls",
        "--filter",
        f"label={LABEL}.content",
        "--format",
        "{{.Repository}}:{{.Tag}}",
    ]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return set(asked.stdout.split()) if asked.returncode == 0 else None
