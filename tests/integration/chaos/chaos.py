"""Random moments of harm, and what holds after each; docs/chaos.md tells what was found.

    python tests/integration/chaos/chaos.py --moments 200 --docker --json chaos.json

The same seed gives the same troubles at the same moments, as far as a machine's speed allows. Full disks and
an engine of our own take root; the clock's jumps take Debian's package faketime. What the machine cannot do
is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]

from command_line import git  # noqa: E402
from moments import TROUBLES, Trouble, able  # noqa: E402
from private_engine import PrivateEngine, mount, private_engine  # noqa: E402
from world import CULPRIT, BrokenError, World, promise  # noqa: E402

DISK = "24m"
CLEANED = 0.25
"""Share of the moments after which `repro clean` comes before the same command."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--docker", action="store_true", help="some of them with an engine of our own")
    parser.add_argument("--only", default="", help="part of a trouble's name")
    parser.add_argument("--json", type=Path, help="file for the results")
    asked = parser.parse_args()
    results = run(asked.moments, asked.seed, docker=asked.docker, only=asked.only)
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    return int(any(row["broken"] for row in results))


def run(moments: int, seed: int, *, docker: bool = False, only: str = "") -> list[dict[str, object]]:
    """Provoke so many moments; a row each, with what was broken or "".

    Args:
        moments: how many.
        seed: of troubles and moments.
        docker: whether containers are among them; takes root and `dockerd`.
        only: part of the name of the troubles to choose from.
    """
    # In the background of a shell SIGINT is ignored, by the commands that are begun here as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng, can = random.Random(seed), able()
    fitting = [each for each in TROUBLES if only in each.name and set(each.needs) <= can]
    with ExitStack() as stack:
        engine = stack.enter_context(private_engine()) if docker else None
        fitting = [each for each in fitting if each.engine == "host" or engine is not None]
        plan = list(_plan(fitting, moments, rng))
        return [_row(number, *one, seed, engine) for number, one in enumerate(plan)]


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
    began, broken = time.monotonic(), ""
    try:
        moment(trouble, stage, random.Random(f"{seed} {number}"), engine)
    except Exception as error:
        broken = str(error) if isinstance(error, BrokenError) else traceback.format_exc()
    row = {
        "number": number,
        "trouble": trouble.name,
        "stage": stage,
        "engine": trouble.engine,
        "broken": broken,
    }
    told = broken.strip().splitlines()[-1][:300] if broken else "kept"
    print(f"{number} {trouble.engine}, {stage}: {trouble.name}: {told}", file=sys.stderr, flush=True)
    return {**row, "seconds": round(time.monotonic() - began, 1)}


def moment(trouble: Trouble, stage: str, rng: random.Random, engine: PrivateEngine | None = None) -> None:
    """One trouble in a new world, and all that must hold after it.

    Raises:
        BrokenError: a promise was not kept.
    """
    docker = engine if trouble.engine == "docker" else None
    with _world(trouble, docker) as world:
        prepare(world, stage)
        kept = world.lines() if trouble.do.__name__ != "disk_full_at_first" else {}
        killed = trouble.do(world, rng, stage, docker)
        world.check_kept(kept)
        after = world.lines()
        check_shown(world, docker)
        if rng.random() < CLEANED:
            check_cleaned(world, docker)
        finish(world, stage, killed, docker)
        world.check_kept(after)


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
            if small:
                os.system(f"umount --lazy {world.state}")


_READY: dict[str, Path] = {}
"""A state folder with trials, made once and copied."""


def prepare(world: World, stage: str) -> None:
    """What a stage takes for granted: trials to diagnose and to report, a history to search."""
    if stage == "bisect":
        world.make_history()
    if stage in ("diagnose", "report"):
        if "state" not in _READY:
            status, _ = world.run(*world.arguments("matrix"))
            promise(status == 0, f"the matrix before ended with status {status}")
            _READY["state"] = Path(tempfile.mkdtemp(prefix="repro-chaos-")) / "state"
            shutil.copytree(world.state, _READY["state"], symlinks=True)
        else:
            shutil.copytree(_READY["state"], world.state, symlinks=True)
    if world.engine == "docker":
        status, _ = world.run(*world.arguments("build"))
        promise(status == 0, f"the build before ended with status {status}: {world.said[-1][-500:]}")
    world.clear_output()


def check_shown(world: World, engine: PrivateEngine | None) -> None:
    """What is left behind shows in `repro status`."""
    left = [*(path.stem for path in world.notes()), *(_names(engine) if engine else [])]
    if left and (world.state / "blocks").exists():
        status, said = world.run("status", "--state", str(world.state))
        promise(status == 0 and "left behind by killed runs" in said, f"status does not show {left}: {said}")


def check_cleaned(world: World, engine: PrivateEngine | None) -> None:
    """`repro clean` removes what is left behind, and no result."""
    before = world.lines()
    if not world.state.exists():
        return
    status, said = world.run("clean", "--state", str(world.state), *([] if engine else ["--no-images"]))
    promise(status == 0, f"clean ended with status {status}: {said}{world.said[-1][-500:]}")
    world.check_kept(before)
    world.check_nothing_runs()
    if engine is not None:
        promise(not engine.containers(), "clean left containers")
        promise(not engine.docker("images", "-q", "repro-cell"), "clean left images")


def finish(world: World, stage: str, killed: int, engine: PrivateEngine | None) -> None:
    """The same command to its end, and all that it promises."""
    status, said = world.run(*world.arguments(stage))
    done = {0, 5} if stage == "diagnose" else {0}  # no cause is planted for it to name
    promise(status in done, f"the same command ended with status {status}: {world.said[-1][-800:]}")
    world.check_nothing_runs()
    CHECKS[stage](world, said, killed)
    if engine is not None:
        promise(not engine.containers(), f"containers left: {_names(engine)}")
        promise(not engine.volumes(), f"volumes left: {engine.volumes()}")
        promise(not engine.dangling(), f"images without a name: {engine.dangling()}")


def _names(engine: PrivateEngine) -> list[str]:
    return (engine.docker("ps", "-a", "--format", "{{.Names}}") or "").split()


def _matrix(world: World, said: str, killed: int) -> None:
    world.check_matrix(killed)
    (cell,) = json.loads(said)["cells"]
    told = cell["rate"]["trials"] + sum(cell["others"].values())
    promise(told == len(world.ends()), f"the table tells {told} trials")


def _bisect(world: World, said: str, killed: int) -> None:
    told = json.loads(said)
    commits = git(world.home / "repository", "rev-list", "--reverse", "HEAD").split()
    promise(told["first_bad"] == commits[CULPRIT], f"it names {told['first_bad']}")
    promise(told["confidence"] >= 0.95, f"its confidence is {told['confidence']}")


def _diagnose(world: World, said: str, killed: int) -> None:
    told = json.loads(said)
    promise(bool(told["causes"]), "no cause was weighed")
    promise(json.loads((world.state / "diagnosis.json").read_text()) == told, "diagnosis.json says otherwise")


def _report(world: World, said: str, killed: int) -> None:
    folder = world.state / "report"
    promise(bool((folder / "report.md").read_text()), "there is no report.md")
    with zipfile.ZipFile(folder / "report.zip") as bundle:
        promise(bundle.testzip() is None, "report.zip is damaged")
    parts = [path.name for path in folder.iterdir() if path.name.endswith(".part")]
    promise(not parts, f"drafts were left: {parts}")


CHECKS = {
    "plan": lambda world, said, killed: promise("to build" in said, said),
    "build": lambda world, said, killed: None,
    "matrix": _matrix,
    "bisect": _bisect,
    "diagnose": _diagnose,
    "report": _report,
}


def table(results: Sequence[dict[str, object]]) -> str:
    """A row a trouble: how often, at which stages, and how often a promise was broken."""
    stages: dict[tuple[object, object], Counter[object]] = defaultdict(Counter)
    broken: Counter[tuple[object, object]] = Counter()
    for row in results:
        key = (row["engine"], row["trouble"])
        stages[key][row["stage"]] += 1
        broken[key] += bool(row["broken"])
    lines = ["| engine | what | moments | at | broken |", "| --- | --- | --- | --- | --- |"]
    for key, counts in sorted(stages.items()):
        at = ", ".join(f"{stage} {number}" for stage, number in sorted(counts.items()))
        lines.append(f"| {key[0]} | {key[1]} | {counts.total()} | {at} | {broken[key]} |")
    lines.append(f"| all | | {len(results)} | | {sum(broken.values())} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
