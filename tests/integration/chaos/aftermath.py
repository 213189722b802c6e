"""What must hold after each moment; docs/chaos.md says it in words."""

from __future__ import annotations

import json
import zipfile

from command_line import git
from private_engine import PrivateEngine
from world import CULPRIT, World, promise, until


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
    promise(status == 0, f"the same command ended with status {status}: {world.said[-1][-800:]}")
    world.check_nothing_runs()
    until(lambda: not world.processes(), "something that the kit began runs on")
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
    world.check_tallies()


def _diagnose(world: World, said: str, killed: int) -> None:
    told = json.loads(said)
    supported = [cause["name"] for cause in told["causes"] if cause["verdict"] == "supported"]
    promise(supported == ["a rare draw"], f"it names {supported}")
    world.check_tallies()
    promise(json.loads((world.state / "diagnosis.json").read_text()) == told, "diagnosis.json says otherwise")


def _report(world: World, said: str, killed: int) -> None:
    folder = world.state / "report"
    promise(json.loads(said)["script"]["shown"], f"no script shows the failure: {said}")
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
