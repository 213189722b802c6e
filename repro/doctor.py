"""Checks of this machine, each with what was seen and the fix; nothing is changed and nothing is started."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from repro import ui
from repro.cells import Cell
from repro.engines import indexes, nvidia, pythons, wheels
from repro.engines.base import Check, CheckState, GpuMode
from repro.engines.client import FAILURES, connect
from repro.engines.docker import DockerEngine
from repro.engines.select import create
from repro.errors import NotReadyError
from repro.stacks import stacks

OK, WARN, FAIL = CheckState.OK, CheckState.WARN, CheckState.FAIL

CELL_BYTES = {True: 1_500_000_000, False: 800_000_000}
"""What a further cell takes on disk, with and without a GPU build of torch."""
STACK_BYTES = {True: 7_000_000_000, False: 1_100_000_000}
"""What base and torch take, once for every torch."""
SPARE_BYTES = 2_000_000_000


def checks(
    *,
    state: Path,
    engine: str = "auto",
    gpu: GpuMode = GpuMode.AUTO,
    cells: Sequence[Cell] = (),
    present: Sequence[Cell] = (),
) -> list[Check]:
    """Look at everything that a run needs, within five seconds.

    Args:
        state: the run's folder.
        engine: as asked for on the command line.
        gpu: how a GPU is to get into a trial.
        cells: the plan's cells.
        present: those of them that need no build.
    """
    missing = [cell for cell in cells if cell not in present]
    wants_gpu = any(cell.on_gpu for cell in cells)
    groups: list[Callable[[], list[Check]]] = [
        lambda: _engine(state, engine, gpu, wants_gpu),
        lambda: [_gpu(wants_gpu)],
        lambda: _disk(state, missing),
        lambda: _indexes(missing),
        lambda: [_compiler(wants_gpu, engine)],
        lambda: [_pythons(cells), _uv(), _git()],
    ]
    with ThreadPoolExecutor(len(groups)) as pool:
        return [check for group in pool.map(lambda group: group(), groups) for check in group]


def _engine(state: Path, name: str, gpu: GpuMode, wants_gpu: bool) -> list[Check]:
    """The engine that would run, and how a GPU gets into its containers."""
    if name in ("auto", "docker"):
        try:
            docker = DockerEngine(state, gpu)
            return [*docker.checks(), *_gpu_mode(docker.gpu_mode, gpu, wants_gpu)]
        except NotReadyError as error:
            level = FAIL if name == "docker" else WARN
            row = Check(
                name="engine", state=level, evidence=f"{error.what}: {error.why}", fix=error.next_step
            )
            if name == "docker":
                return [row]
            return [row, *create("venv", state=state, gpu=gpu).checks()]
    return create(name, state=state, gpu=gpu).checks()


def _gpu_mode(mode: GpuMode, asked: GpuMode, wants_gpu: bool) -> list[Check]:
    """How a GPU would be handed to a container."""
    host = nvidia.GpuHost.here()
    if mode is GpuMode.NONE:
        if not (nvidia.has_gpu() or wants_gpu):
            return []
        fix = "install nvidia-container-toolkit and run `nvidia-ctk runtime configure --runtime=docker`"
        evidence = "no way to hand a GPU to a container was found"
        return [Check(name="gpu mode", state=FAIL if wants_gpu else WARN, evidence=evidence, fix=fix)]
    seen = {
        GpuMode.TOOLKIT: "NVIDIA's container toolkit is registered with the engine",
        GpuMode.CDI: "a CDI description names the GPUs",
        GpuMode.DEVICES: f"{len(host.nodes)} device nodes and {len(host.libraries)} driver libraries",
    }[mode]
    works = mode is not GpuMode.DEVICES or (host.nodes and host.libraries)
    note = "" if asked is not GpuMode.AUTO else " (auto)"
    return [Check(name="gpu mode", state=OK if works else FAIL, evidence=f"{mode}{note}: {seen}")]


def _gpu(wants_gpu: bool) -> Check:
    """The GPU and its driver, as far as they can be seen without torch."""
    count = nvidia.gpu_count()
    if count:
        driver = nvidia.driver_version() or "unknown"
        return Check(
            name="gpu", state=OK, evidence=f"{count} x {nvidia.gpu_model() or 'GPU'}, driver {driver}"
        )
    return Check(
        name="gpu",
        state=FAIL if wants_gpu else WARN,
        evidence="no NVIDIA GPU answers",
        fix="cells run on the CPU under Triton's interpreter (--profile cpu); rates there are not a GPU's",
    )


def _disk(state: Path, missing: Sequence[Cell]) -> list[Check]:
    """Free space where images and records go, against what the plan adds."""
    needed = needed_bytes(missing)
    rows = []
    for name, folder in (("disk", _existing(state)), ("image disk", _engine_folder())):
        if folder is None:
            continue
        free = shutil.disk_usage(folder).free
        to_build = f"{ui.count(len(missing), 'cell')} to build: about {_gb(needed)}"
        evidence = f"{_gb(free)} free at {folder}; {to_build}"
        enough = free > needed + SPARE_BYTES
        fix = "" if enough else "docker system prune, or fewer cells with --only"
        rows.append(Check(name=name, state=OK if enough else FAIL, evidence=evidence, fix=fix))
    return rows


def needed_bytes(missing: Sequence[Cell]) -> int:
    """About what building these cells takes on disk: each torch once, and each cell's own layer."""
    torches = {(cell.python, cell.torch, cell.cuda): cell.on_gpu for cell in missing}
    return sum(STACK_BYTES[on_gpu] for on_gpu in torches.values()) + sum(
        CELL_BYTES[cell.on_gpu] for cell in missing
    )


def _existing(path: Path) -> Path:
    path = path.absolute()
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _engine_folder() -> Path | None:
    """Where the engine keeps images, where that is a folder of this machine."""
    try:
        client = connect(timeout=5)
        folder = Path(str(client.info().get("DockerRootDir", "")))
        client.close()
    except (NotReadyError, *FAILURES):
        return None
    return folder if folder.is_dir() else None


def _indexes(missing: Sequence[Cell]) -> list[Check]:
    """Every package index that pip is configured with, and PyTorch's own where a cell needs it."""
    known, configured = stacks(), indexes.configured()
    fetched = [
        cell
        for cell in missing
        if cell.torch in known.torch and not wheels.local_wheel(configured.find_links, cell)
    ]
    own = {known.wheel_index(cell.torch, cell.cuda) for cell in fetched}
    urls = [*configured.urls, *sorted(url for url in own if url)]
    rows = [
        _index(url, why, url in configured.urls)
        for url, why in zip(urls, indexes.reachable(urls, configured.cert), strict=True)
    ]
    for place in configured.find_links:
        if "://" not in place:
            held = len(list(Path(place).glob("*.whl")))
            state = OK if held else WARN
            rows.append(Check(name="wheels", state=state, evidence=f"{ui.count(held, 'wheel')} in {place}"))
    return rows


def _index(url: str, why: str | None, configured: bool) -> Check:
    shown = indexes.without_password(url)
    if why is None:
        return Check(name="index", state=OK, evidence=f"{shown} answers")
    fix = (
        "`pip config list` shows where it comes from; without it, wheels come from PIP_FIND_LINKS alone"
        if configured
        else "put those wheels into a folder named in PIP_FIND_LINKS, or leave the cells out with --only"
    )
    return Check(name="index", state=WARN, evidence=f"{shown} does not answer: {why}", fix=fix)


def _compiler(wants_gpu: bool, engine: str) -> Check:
    """gcc and Python.h: what Triton compiles launchers with outside containers."""
    gcc = shutil.which("gcc") or shutil.which("clang")
    here = pythons.look_at(Path(shutil.which("python3") or "python3"))
    header = here.header if here and here.header.exists() else None
    evidence = f"C compiler {gcc or 'missing'}; Python.h {header or 'missing'}"
    if gcc and header:
        return Check(name="compiler", state=OK, evidence=evidence)
    blocks = wants_gpu and engine in ("venv", "host")
    fix = "apt-get install gcc python3-dev; containers bring their own"
    return Check(name="compiler", state=FAIL if blocks else WARN, evidence=evidence, fix=fix)


def _pythons(cells: Sequence[Cell]) -> Check:
    """Which of the Pythons that the plan names are on this machine."""
    here = pythons.versions_here()
    lacking = sorted({cell.python for cell in cells} - set(here))
    evidence = f"Python {', '.join(here)} here"
    if not lacking:
        return Check(name="python", state=OK, evidence=evidence)
    fix = f"uv python install {' '.join(lacking)}; containers take theirs from a registry where one answers"
    return Check(
        name="python", state=WARN, evidence=f"{evidence}; the plan also names {', '.join(lacking)}", fix=fix
    )


def _uv() -> Check:
    try:
        program = pythons.uv_program()
    except FileNotFoundError:
        fix = "python3 -m pip install uv"
        return Check(name="uv", state=FAIL, evidence="uv is not installed", fix=fix)
    return Check(name="uv", state=OK, evidence=_version([program, "--version"]) or program)


def _git() -> Check:
    found = _version(["git", "--version"])
    if found:
        return Check(name="git", state=OK, evidence=found)
    fix = "apt-get install git; without it subjects are folders, and commits cannot be searched"
    return Check(name="git", state=WARN, evidence="git is not installed", fix=fix)


def _version(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
