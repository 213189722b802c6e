"""How long images take from nothing: the first cell with its base and torch, then each further one.

    python benchmarks/images.py [--cold | --keep] [--builder buildx|buildkit|classic] [TRITON...]

Removes the kit's images of these cells first; layers and downloads may still come from the builder's cache.
--cold empties that cache, too, and not just the kit's part of it. With --keep what stands is used.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from docker.errors import ImageNotFound

from repro.cells import Cell
from repro.engines import builders
from repro.engines.base import Limits, Prepared
from repro.engines.client import connect
from repro.engines.docker import DockerEngine
from repro.engines.tags import base_tag, cell_tag, torch_tag
from repro.stacks import stacks

TORCH = "2.13.0"


def cell_of(triton: str) -> Cell:
    """A CPU cell with the packages that its triton needs."""
    return Cell(
        python="3.11",
        torch=TORCH,
        triton=triton,
        cuda="cpu",
        pinned_triton=stacks().torch[TORCH].triton,
        packages=stacks().requirements(triton, "cpu"),
    )


def forget(cells: list[Cell]) -> None:
    """Remove the images of these cells, the ones on top first."""
    client = connect()
    for tag in dict.fromkeys(
        [cell_tag(c, ()) for c in cells] + [torch_tag(c) for c in cells] + [base_tag(c) for c in cells]
    ):
        try:
            client.images.remove(tag, force=True)
        except ImageNotFound:
            continue


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("triton", nargs="*", default=["3.6.0", "3.7.1", "3.8.0"])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--builder", default="")
    given = parser.parse_args()
    os.environ[builders.ENVIRONMENT_NAME] = given.builder
    cells = [cell_of(triton) for triton in given.triton]
    if not given.keep:
        forget(cells)
    if given.cold:
        command = [builders.chosen().program, "builder", "prune", "--all", "--force"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        engine = DockerEngine(Path(folder))

        def prepare(cell: Cell) -> Prepared:
            log = Path(folder, f"{cell.id}.log")
            return engine.prepare(cell, requirements=(), limits=Limits(), log=log, say=print)

        begin = time.monotonic()
        first = prepare(cells[0])
        print(f"{first.seconds:6.1f} s  first cell, with base and torch: {first.cell.id}")
        with ThreadPoolExecutor(2) as pool:
            for made in pool.map(prepare, cells[1:]):
                print(f"{made.seconds:6.1f} s  further cell: {made.cell.id}")
        print(f"{time.monotonic() - begin:6.1f} s  in all, with {builders.chosen().kind}")


if __name__ == "__main__":
    main()
