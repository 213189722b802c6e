"""The environment variables of a trial process, the same names in every engine."""

from __future__ import annotations

from repro.cells import Cell
from repro.engines.base import Job, Places


def trial_environment(cell: Cell, job: Job, places: Places, *, home: str, tmp: str) -> dict[str, str]:
    """What a trial process sees, beside PATH and what the engine adds; the job's own variables win."""
    caches = places.cache
    environment = {
        "HOME": home,
        "TMPDIR": tmp,
        "LANG": "C.UTF-8",
        "PYTHONPATH": ":".join([places.kit, *(joined(places.subject, part) for part in job.python_path)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "TRITON_CACHE_DIR": f"{caches}/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
        "XDG_CACHE_HOME": f"{caches}/xdg",
        "CUDA_CACHE_PATH": f"{caches}/cuda",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    if not cell.on_gpu:
        environment["TRITON_INTERPRET"] = "1"
    return {**environment, **dict(cell.env), **job.env}


def joined(root: str, part: str) -> str:
    """A folder below `root`; "." is `root` itself."""
    return root if part in ("", ".") else f"{root}/{part}"


def command_of(job: Job, python: str, places: Places) -> list[str]:
    """What runs: the plugin with the job's request, or the job's own command."""
    return list(job.command) or [python, "-m", "repro_trial", f"{places.records}/request.json"]
