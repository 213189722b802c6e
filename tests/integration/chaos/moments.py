"""What goes wrong, one function each: begins a command, does it harm at a random moment, and ends it.

Each takes the world, a random generator and the stage, and returns how many trials it may have killed. What
must hold afterwards is `aftermath`'s business.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from private_engine import PrivateEngine, fill
from world import World, promise

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
SECONDS = {"plan": 1.0, "build": 1.2, "matrix": 4.0, "bisect": 8.0, "diagnose": 12.0, "report": 2.5}
"""About how long each stage takes on the host engine, undisturbed: moments are drawn from that."""
SLOWER = 3.0
"""How many times longer with containers."""
EXITS = {0, 3, 4, 5, 6, 130}
"""How a disturbed command may end: done, not ready, not built, no answer, not reproduced, interrupted."""


@dataclass
class Trouble:
    """One kind of harm.

    Args:
        name: for the table.
        do: see this module.
        stages: that it is done to.
        engine: `host` or `docker`.
        needs: what the machine must have for it, as words of `able`.
    """

    name: str
    do: Callable[[World, random.Random, str, PrivateEngine | None], int]
    stages: tuple[str, ...]
    engine: str = "host"
    needs: tuple[str, ...] = ()


def wait(world: World, rng: random.Random, stage: str, process: subprocess.Popen[str]) -> None:
    """A random moment of a stage, or its end."""
    longest = SECONDS[stage] * (SLOWER if world.engine == "docker" else 1)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=rng.uniform(0.0, longest))


def end(world: World, process: subprocess.Popen[str]) -> int:
    """The end of a command that was disturbed: in words, and with a status that says what."""
    status = world.end(process)
    promise(status in EXITS, f"it ended with status {status}")
    return status


# On the host engine ------------------------------------------------------------------------------------


def kill_kit(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    process = world.start(*world.arguments(stage))
    wait(world, rng, stage, process)
    process.kill()
    process.wait()
    return 0


def kill_trial(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    process = world.start(*world.arguments(stage))
    wait(world, rng, stage, process)
    killed = world.kill_trials()
    end(world, process)
    return killed


def interrupt(number: signal.Signals) -> Callable[[World, random.Random, str, PrivateEngine | None], int]:
    def press(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
        process = world.start(*world.arguments(stage))
        wait(world, rng, stage, process)
        asked = process.poll() is None
        if asked:
            process.send_signal(number)
        status = world.end(process)
        # Before Python has set its handlers a signal ends it at once, and nothing was begun.
        expected = {0, 1, 5, 130, -number} if asked else EXITS
        promise(status in expected, f"it ended with status {status}")
        world.check_nothing_runs()
        return 0

    return press


def interrupt_twice(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    """An impatient user."""
    process = world.start(*world.arguments(stage))
    wait(world, rng, stage, process)
    for _ in range(3):
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGINT)
        time.sleep(rng.uniform(0.0, 0.05))
    world.end(process)
    return 0


def two_kits(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    first = world.start(*world.arguments(stage))
    time.sleep(rng.uniform(0.0, 1.5))
    second = world.start(*world.arguments(stage))
    statuses = {world.end(first), world.end(second)}
    promise(statuses <= {0, 3} and 0 in statuses, f"they ended with {statuses}")
    return 0


def clock_jump(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    """The wall clock of the kit jumps by years, forth or back, while it runs."""
    clock = world.home / "clock"
    clock.write_text("+0d")
    env = {
        "LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    process = world.start(*world.arguments(stage), env=env)
    for _ in range(3):
        wait(world, rng, stage, process)
        clock.write_text(f"{rng.choice((-9000, -400, -1, 1, 30, 9000)):+d}d")
    end(world, process)
    return 0


def disk_full(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    """The state folder's disk fills up at some moment, all of it or all but a little."""
    filler = world.state / "filler"
    process = world.start(*world.arguments(stage))
    try:
        wait(world, rng, stage, process)
        fill(filler, leave=rng.choice((0, 0, 4096, 20_000, 200_000)))
        end(world, process)
    finally:
        filler.unlink(missing_ok=True)
    return 1  # the trial that could not write its end


def disk_full_at_first(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    """There is hardly any room when the subject is copied and the plugin installed."""
    for path in world.state.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    filler = world.state / "filler"
    fill(filler, leave=rng.choice((0, 4096, 30_000, 100_000, 300_000)))
    try:
        end(world, world.start(*world.arguments(stage)))
    finally:
        filler.unlink(missing_ok=True)
    return 1


# With containers ---------------------------------------------------------------------------------------


def kill_container(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    return _harm_containers(world, rng, stage, engine, "kill")


def remove_container(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    return _harm_containers(world, rng, stage, engine, "rm", "--force")


def _harm_containers(
    world: World, rng: random.Random, stage: str, engine: PrivateEngine | None, *how: str
) -> int:
    assert engine is not None
    process = world.start(*world.arguments(stage))
    wait(world, rng, stage, process)
    found = engine.running()
    for container in found:
        engine.docker(*how, container)
    end(world, process)
    return len(found)


def harm_engine(number: signal.Signals, pause: float):
    def harm(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
        assert engine is not None
        process = world.start(*world.arguments(stage))
        wait(world, rng, stage, process)
        engine.stop(number)
        time.sleep(rng.uniform(0.0, pause))
        engine.start()
        end(world, process)
        return 1  # the trial that ran, if one did: a cell has one container at a time

    return harm


def full_engine(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    """The engine's disk is full while an image is made."""
    assert engine is not None
    forget_images(engine)
    process = world.start(*world.arguments(stage))
    wait(world, rng, stage, process)
    with engine.full_disk():
        end(world, process)
    return 0


def kill_build(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    assert engine is not None
    forget_images(engine)
    return kill_kit(world, rng, stage, engine)


def interrupt_build(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    assert engine is not None
    forget_images(engine)
    return interrupt(signal.SIGINT)(world, rng, stage, engine)


def forget_images(engine: PrivateEngine) -> None:
    """Remove the cells' images, so that they are made again; the base image takes longest and stays."""
    for name in ("repro-cell", "repro-torch"):
        for image in (engine.docker("images", "-q", name) or "").split():
            engine.docker("rmi", "--force", image)


ALL_STAGES = ("plan", "build", "matrix", "bisect", "diagnose", "report")
RECORDING = ("matrix", "matrix", "matrix")
"""Named several times, as moments are drawn from what is named: most of what can be lost is lost here."""
TROUBLES = (
    Trouble("kill -9 of the kit", kill_kit, (*ALL_STAGES, *RECORDING)),
    Trouble("kill -9 of the trial's process", kill_trial, (*RECORDING, "bisect")),
    Trouble("Ctrl-C", interrupt(signal.SIGINT), (*ALL_STAGES, *RECORDING)),
    Trouble("SIGTERM", interrupt(signal.SIGTERM), ("plan", "build", "report", *RECORDING)),
    Trouble("Ctrl-C three times", interrupt_twice, ("matrix", "matrix")),
    Trouble("two kits in one folder", two_kits, ("matrix", "matrix")),
    Trouble("the clock jumps by days or years", clock_jump, ("matrix", "matrix"), needs=("faketime",)),
    Trouble("disk full while recording", disk_full, RECORDING, needs=("root",)),
    Trouble("disk full from the beginning", disk_full_at_first, ("build", *RECORDING), needs=("root",)),
    Trouble("kill -9 of the kit", kill_kit, ("matrix",), "docker"),
    Trouble("Ctrl-C", interrupt(signal.SIGINT), ("matrix",), "docker"),
    Trouble("a container killed", kill_container, ("matrix",), "docker"),
    Trouble("a container removed", remove_container, ("matrix",), "docker"),
    Trouble("kill -9 of the engine", harm_engine(signal.SIGKILL, 3.0), ("matrix",), "docker"),
    Trouble("the engine restarted", harm_engine(signal.SIGTERM, 0.2), ("matrix",), "docker"),
    Trouble("the engine killed while building", harm_engine(signal.SIGKILL, 1.0), ("build",), "docker"),
    Trouble("kill -9 of the kit while building", kill_build, ("build",), "docker"),
    Trouble("Ctrl-C while building", interrupt_build, ("build",), "docker"),
    Trouble("the engine's disk full while building", full_engine, ("build",), "docker"),
)


def able() -> set[str]:
    """What this machine has of what some troubles need."""
    found = {"faketime"} if Path(FAKETIME).exists() else set()
    return found | ({"root"} if os.geteuid() == 0 else set())
