"""Every kind of harm, what it is done to, and what the machine must have for it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import container_moments as containers
import moments as host
from moments import FAKETIME, Harm


@dataclass
class Trouble:
    """One kind of harm.

    Args:
        name: for the table.
        do: see `moments` and `container_moments`.
        stages: that it is done to.
        engine: `host` or `docker`.
        needs: what the machine must have for it, as words of `able`.
    """

    name: str
    do: Harm
    stages: tuple[str, ...]
    engine: str = "host"
    needs: tuple[str, ...] = ()


ALL_STAGES = ("plan", "build", "matrix", "bisect", "diagnose", "report")
RECORDING = ("matrix", "matrix", "matrix")
"""Named several times, as moments are drawn from what is named: most of what can be lost is lost here."""
IN_CONTAINERS = ("matrix", "bisect", "diagnose", "report")
"""What starts containers."""
TROUBLES = (
    Trouble("kill -9 of the kit", host.kill_kit, (*ALL_STAGES, *RECORDING)),
    Trouble("kill -9 of the trial's process", host.kill_trial, (*RECORDING, "bisect")),
    Trouble("Ctrl-C", host.interrupt(signal.SIGINT), (*ALL_STAGES, *RECORDING)),
    Trouble("SIGTERM", host.interrupt(signal.SIGTERM), ("plan", "build", "report", *RECORDING)),
    Trouble("Ctrl-C three times", host.interrupt_twice, ("matrix", "matrix")),
    Trouble("two kits in one folder", host.two_kits, ("matrix", "matrix")),
    Trouble("the clock jumps by days or years", host.clock_jump, ("matrix", "matrix"), needs=("faketime",)),
    Trouble("disk full while recording", host.disk_full, RECORDING, needs=("root",)),
    Trouble("disk full from the beginning", host.disk_full_at_first, ("build", *RECORDING), needs=("root",)),
    Trouble("kill -9 of the kit", host.kill_kit, IN_CONTAINERS, "docker"),
    Trouble("Ctrl-C", host.interrupt(signal.SIGINT), IN_CONTAINERS, "docker"),
    Trouble("a container killed", containers.kill_container, IN_CONTAINERS, "docker"),
    Trouble("a container removed", containers.remove_container, ("matrix", "bisect"), "docker"),
    Trouble("kill -9 of the engine", containers.harm_engine(signal.SIGKILL, 3.0), IN_CONTAINERS, "docker"),
    Trouble("the engine restarted", containers.harm_engine(signal.SIGTERM, 0.2), IN_CONTAINERS, "docker"),
    Trouble("kill -9 of the engine while building", containers.kill_engine_building, ("build",), "docker"),
    Trouble("kill -9 of the kit while building", containers.kill_build, ("build",), "docker"),
    Trouble("Ctrl-C while building", containers.interrupt_build, ("build",), "docker"),
    Trouble("the engine's disk full while building", containers.full_engine, ("build",), "docker"),
)


def able() -> set[str]:
    """What this machine has of what some troubles need."""
    found = {"faketime"} if Path(FAKETIME).exists() else set()
    return found | ({"root"} if os.geteuid() == 0 else set())
