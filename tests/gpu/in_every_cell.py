"""Run the operator's suite on the GPU, in the container of every cell of a matrix.

    python -m tests.gpu.in_every_cell [--matrix FILE] [--only GLOB] [--jobs 4]

The images are those that `repro matrix` has built. Each container gets the repository read-only, one GPU, no
network and a kernel cache of its own. Prints a row a cell; its exit status is 1 where one of them failed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from docker.types import Mount

import docker
from repro.cells import Cell, expand, select
from repro.config import load
from repro.engines.base import GpuMode
from repro.engines.gpu import access, decide
from repro.engines.images import PTXAS_HOME
from repro.engines.nvidia import GpuHost
from repro.engines.packages import PTXAS_INSIDE
from repro.engines.tags import cell_tag

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("tests/suite", "tests/gpu/test_operator.py")
PYTEST = ("python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default", "-m", "not slow")
REPORTED = "tests/suite/test_multiscale_deformable_attention.py::test_backward[float32"
LAST_LINE = re.compile(r"^.*\b(?:passed|failed|error|no tests ran)\b.* in .*$", re.MULTILINE)


def run(client: docker.DockerClient, cell: Cell, requirements: tuple[str, ...]) -> tuple[bool, str]:
    """Whether the suite passed in a cell, and what pytest said last."""
    host = GpuHost.here()
    given = access(decide(GpuMode.AUTO, host, client.info().get("Runtimes", {}), None), 0, host)
    environment = {"HOME": "/tmp", "TRITON_CACHE_DIR": "/tmp/triton", **dict(cell.env), **given.environment}
    if cell.ptxas:
        environment["TRITON_PTXAS_PATH"] = f"{PTXAS_HOME}/{PTXAS_INSIDE}"
    container = client.containers.run(
        cell_tag(cell, requirements),
        [*PYTEST, f"--deselect={REPORTED}", *TESTS],
        detach=True,
        working_dir="/kit",
        network_mode="none",
        shm_size="1g",
        environment=environment,
        mounts=[Mount("/kit", str(ROOT), type="bind", read_only=True), *given.mounts],
        devices=list(given.devices),
        device_requests=list(given.device_requests),
    )
    try:
        status = int(container.wait()["StatusCode"])
        output = container.logs().decode(errors="replace")
    finally:
        container.remove(force=True)
    if status:
        print(f"--- {cell.id}\n{output[-4000:]}", file=sys.stderr)
    said = LAST_LINE.findall(output)
    return status == 0, said[-1].strip("= ") if said else f"pytest ended with {status}"


def main() -> int:
    """Run, print a row a cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--matrix", type=Path, default=ROOT / "matrix.yaml")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=4)
    given = parser.parse_args()
    matrix = load(given.matrix)
    cells = select(expand(matrix, "gpu").cells, given.only)
    client = docker.from_env()

    def one(cell: Cell) -> bool:
        began = time.monotonic()
        passed, said = run(client, cell, tuple(matrix.subject.requirements))
        print(f"{cell.id:68} {said}  ({time.monotonic() - began:.0f} s in all)", flush=True)
        return passed

    with ThreadPoolExecutor(given.jobs) as threads:
        return 0 if all(list(threads.map(one, cells))) else 1


if __name__ == "__main__":
    sys.exit(main())
