"""What goes wrong without containers: a function begins a command, harms it at a random moment, and ends it.

Each takes the world, a random generator and the stage, and returns how many trials it may have killed. What
must hold afterwards is `aftermath`'s business; `container_moments` has those that take containers.
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

from private_engine import PrivateEngine, fill
from world import World, promise, until

Harm = Callable[[World, random.Random, str, PrivateEngine | None], int]
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
SECONDS = {"plan": 1.0, "build": 1.2, "matrix": 4.0, "bisect": 8.0, "diagnose": 12.0, "report": 2.5}
"""About how long each stage takes on the host engine, undisturbed: moments are drawn from that."""
IN_CONTAINERS = {"build": 4.0, "matrix": 12.0, "bisect": 22.0, "diagnose": 16.0, "report": 5.5}
"""The same with containers."""
EXITS = {0, 3, 4, 5, 6, 130}
"""How a disturbed command may end: done, not ready, not built, no answer, not reproduced, interrupted."""


def wait(world: World, rng: random.Random, stage: str, process: subprocess.Popen[str]) -> None:
    """A random moment of a stage, or its end."""
    longest = (IN_CONTAINERS if world.engine == "docker" else SECONDS)[stage]
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=rng.uniform(0.0, longest))
    world.in_time = process.poll() is None


def end(world: World, process: subprocess.Popen[str]) -> int:
    """The end of a command that was disturbed: in words, and with a status that says what."""
    status = world.end(process)
    promise(status in EXITS, f"it ended with status {status}")
    return status


def kill_kit(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    process = world.start(*world.arguments(stage))
    wait(world, rng, stage, process)
    process.kill()
    process.wait()
    return 0


def kill_trial(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    process = world.start(*world.arguments(stage))
    wait(world, rng, stage, process)
    until(lambda: world.trial_processes() or process.poll() is not None, "it starts no trial", 60)
    killed = world.kill_trials()
    world.in_time = killed > 0
    end(world, process)
    return killed


def interrupt(number: signal.Signals) -> Harm:
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
