"""Which engine runs the cells."""

from __future__ import annotations

from pathlib import Path

from repro.engines.base import Engine, GpuMode
from repro.errors import UsageError

NAMES = ("auto", "docker", "venv", "host")


def create(name: str, *, state: Path, gpu: GpuMode = GpuMode.AUTO) -> Engine:
    """Make an engine; `auto` is docker where an engine answers and a client can build, else venv.

    Args:
        name: one of `NAMES`.
        state: the run's folder.
        gpu: how a GPU gets into a trial.

    Raises:
        UsageError: there is no engine of that name.
        NotReadyError: `docker` was asked for by name and does not answer.
    """
    if name == "auto":
        from repro.engines.docker import engine_answers

        name = "docker" if engine_answers() is None else "venv"
    if name == "docker":
        from repro.engines.docker import DockerEngine

        return DockerEngine(state, gpu)
    if name == "venv":
        from repro.engines.venv import VenvEngine

        return VenvEngine(state, gpu)
    if name == "host":
        from repro.engines.host import HostEngine

        return HostEngine(state, gpu)
    raise UsageError(f"there is no engine {name!r}", next_step=f"--engine takes one of {', '.join(NAMES)}")


def describe(engine: Engine) -> str:
    """One line for people: the engine and what it stands on."""
    return f"{engine.name}: " + "; ".join(check.evidence for check in engine.checks())
