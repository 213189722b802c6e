"""What goes wrong with containers: they are killed or removed, or their engine is, or its disk is full.

Each function is called as those of `moments` are.
"""

from __future__ import annotations

import random
import signal
import time

from moments import Harm, end, interrupt, kill_kit, wait
from private_engine import PrivateEngine
from world import World


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
    while not (found := engine.running()) and process.poll() is None:
        time.sleep(0.02)
    for container in found:
        engine.docker(*how, container)
    world.in_time = bool(found)
    end(world, process)
    return len(found)


def harm_engine(number: signal.Signals, pause: float) -> Harm:
    def harm(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
        assert engine is not None
        process = world.start(*world.arguments(stage))
        wait(world, rng, stage, process)
        engine.stop(number)
        time.sleep(rng.uniform(0.0, pause))
        engine.start()
        end(world, process)
        return 0  # a trial that the engine took along runs again

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


def kill_engine_building(world: World, rng: random.Random, stage: str, engine: PrivateEngine | None) -> int:
    assert engine is not None
    forget_images(engine)
    return harm_engine(signal.SIGKILL, 1.0)(world, rng, stage, engine)


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
    engine.docker("builder", "prune", "--all", "--force")
