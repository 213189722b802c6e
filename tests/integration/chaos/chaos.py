"""Random moments of harm, and what holds after each; docs/chaos.md tells what was found.

    python tests/integration/chaos/chaos.py --moments 200 --docker --json chaos.json

The same seed gives the same troubles at the same moments, as far as a machine's speed allows. Full disks and
an engine of our own take root; the clock's jumps take Debian's package faketime. What the machine cannot do
is left out.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue
from threading import Lock

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]

from aftermath import check_cleaned, check_shown, finish  # noqa: E402
from private_engine import PrivateEngine, mount, private_engine  # noqa: E402
from troubles import TROUBLES, Trouble, able  # noqa: E402
from world import BrokenError, World, promise  # noqa: E402

DISK = "24m"
LANES = 3
"""Moments at a time with containers, and as many without; each of the former has an engine to itself."""
CLEANED = 0.25
"""Share of the moments after which `repro clean` comes before the same command."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--docker", action="store_true", help="some of them with an engine of our own")
    parser.add_argument("--only", default="", help="part of a trouble's name")
    parser.add_argument(
        "--again", type=int, nargs="+", help="numbers of moments: those alone, of the same ones"
    )
    parser.add_argument("--json", type=Path, help="file for the results")
    asked = parser.parse_args()
    results = run(asked.moments, asked.seed, docker=asked.docker, only=asked.only, again=asked.again)
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    return int(any(row["broken"] for row in results))


def run(
    moments: int, seed: int, *, docker: bool = False, only: str = "", again: Sequence[int] | None = None
) -> list[dict[str, object]]:
    """Provoke so many moments; a row each, with what was broken or "".

    Args:
        moments: how many.
        seed: of troubles and moments.
        docker: whether containers are among them; takes root and `dockerd`.
        only: part of the name of the troubles to choose from.
        again: numbers of the moments to provoke, where it is not all of them.
    """
    # In the background of a shell SIGINT is ignored, by the commands that are begun here as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # engines and disks are taken down then, too
    rng, can = random.Random(seed), able()
    fitting = [each for each in TROUBLES if only in each.name and set(each.needs) <= can]
    fitting = [each for each in fitting if each.engine == "host" or docker]
    plan = [(number, *one) for number, one in enumerate(_plan(fitting, moments, rng))]
    with ExitStack() as stack:
        engines = [stack.enter_context(private_engine()) for _ in range(LANES if docker else 0)]
        lanes = {each.engine: _Lanes(stack, engines if each.engine == "docker" else ()) for each in fitting}
        wanted = [each for each in plan if again is None or each[0] in again]
        return [row.result() for row in [lanes[each[1].engine].submit(*each, seed) for each in wanted]]


class _Lanes:
    """Moments side by side.

    Args:
        stack: ends them.
        engines: one for each, where they need any.
    """

    def __init__(self, stack: ExitStack, engines: Sequence[PrivateEngine]) -> None:
        self._pool = ThreadPoolExecutor(LANES)
        self._idle: Queue[PrivateEngine | None] = Queue()
        for engine in engines or (None,) * LANES:
            self._idle.put(engine)
        stack.callback(self._pool.shutdown, cancel_futures=True)

    def submit(self, number: int, trouble: Trouble, stage: str, seed: int) -> Future[dict[str, object]]:
        """Provoke a moment as soon as there is room; what `_row` says of it."""
        return self._pool.submit(self._provoke, number, trouble, stage, seed)

    def _provoke(self, number: int, trouble: Trouble, stage: str, seed: int) -> dict[str, object]:
        engine = self._idle.get()
        try:
            return _row(number, trouble, stage, seed, engine)
        finally:
            self._idle.put(engine)


def _plan(troubles: Sequence[Trouble], moments: int, rng: random.Random) -> Iterator[tuple[Trouble, str]]:
    """Every trouble at every stage, again and again, in an order of chance."""
    pairs = [(each, stage) for each in troubles for stage in each.stages]
    while moments > 0:
        rng.shuffle(pairs)
        yield from pairs[:moments]
        moments -= len(pairs)


def _row(
    number: int, trouble: Trouble, stage: str, seed: int, engine: PrivateEngine | None
) -> dict[str, object]:
    began, broken, in_time = time.monotonic(), "", True
    try:
        in_time = moment(trouble, stage, random.Random(f"{seed} {number}"), engine)
    except Exception as error:
        broken = str(error) if isinstance(error, BrokenError) else traceback.format_exc()
    row = {
        "number": number,
        "trouble": trouble.name,
        "stage": stage,
        "engine": trouble.engine,
        "broken": broken,
        "in_time": in_time,
        "seconds": round(time.monotonic() - began, 1),
    }
    told = broken.strip().splitlines()[-1][:300] if broken else "kept" if in_time else "kept, came late"
    about = f"{number} {trouble.engine}, {stage}: {trouble.name}"
    print(f"{about}, {row['seconds']} s: {told}", file=sys.stderr, flush=True)
    return row


def moment(trouble: Trouble, stage: str, rng: random.Random, engine: PrivateEngine | None = None) -> bool:
    """One trouble in a new world, and all that must hold after it.

    Returns:
        Whether it came before the command had ended by itself.

    Raises:
        BrokenError: a promise was not kept.
    """
    docker = engine if trouble.engine == "docker" else None
    with _world(trouble, docker) as world:
        prepare(world, stage)
        kept = world.lines() if trouble.do.__name__ != "disk_full_at_first" else {}
        killed = trouble.do(world, rng, stage, docker)
        in_time = world.in_time
        world.check_kept(kept)
        after = world.lines()
        check_shown(world, docker)
        if rng.random() < CLEANED:
            check_cleaned(world, docker)
        finish(world, stage, killed, docker)
        world.check_kept(after)
    return in_time


@contextmanager
def _world(trouble: Trouble, engine: PrivateEngine | None) -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="repro-chaos-") as folder:
        world = World(Path(folder) / "home", trouble.engine, {"DOCKER_HOST": engine.socket} if engine else {})
        small = "root" in trouble.needs
        if small:
            world.state.mkdir()
            mount(world.state, DISK)
        try:
            yield world
        finally:
            world.kill_trials()
            if engine:  # of a broken promise; the next moment begins with none
                engine.docker("rm", "--force", *engine.containers())
            if small:
                os.system(f"umount --lazy {world.state}")


_READY: dict[str, Path] = {}
"""By engine, a state folder with trials, made once and copied."""
_MAKING = Lock()


def prepare(world: World, stage: str) -> None:
    """What a stage takes for granted: trials to diagnose and to report, a history to search."""
    if stage == "bisect":
        world.make_history()
    if stage in ("diagnose", "report"):
        with _MAKING:
            if world.engine not in _READY:
                _READY[world.engine] = _make_ready(world)
        shutil.copytree(_READY[world.engine], world.state, symlinks=True, dirs_exist_ok=True)
    if world.engine == "docker":
        status, _ = world.run(*world.arguments("build"))
        promise(status == 0, f"the build before ended with status {status}: {world.said[-1][-500:]}")
    world.clear_output()


def _make_ready(world: World) -> Path:
    status, _ = world.run(*world.arguments("matrix"))
    promise(status == 0, f"the matrix before ended with status {status}")
    folder = Path(tempfile.mkdtemp(prefix="repro-chaos-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return shutil.move(world.state, folder / "state")


def table(results: Sequence[dict[str, object]]) -> str:
    """A row a trouble: how often, how often in time, at which stages, how often a promise was broken."""
    stages: dict[tuple[object, object], Counter[object]] = defaultdict(Counter)
    broken: Counter[tuple[object, object]] = Counter()
    in_time: Counter[tuple[object, object]] = Counter()
    for row in results:
        key = (row["engine"], row["trouble"])
        stages[key][row["stage"]] += 1
        broken[key] += bool(row["broken"])
        in_time[key] += bool(row["in_time"])
    lines = ["| engine | what | moments | in time | at | broken |", "| --- | --- | --- | --- | --- | --- |"]
    for key, counts in sorted(stages.items()):
        at = ", ".join(f"{stage} {number}" for stage, number in sorted(counts.items()))
        lines.append(f"| {key[0]} | {key[1]} | {counts.total()} | {in_time[key]} | {at} | {broken[key]} |")
    lines.append(f"| all | | {len(results)} | {in_time.total()} | | {broken.total()} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
