"""What the kit costs on a GPU, beside its goals: a trial, a further image, a search among Tritons.

    .venv/bin/python benchmarks/kit.py [--matrix FILE] [--only GLOB] [--state FOLDER] [--python python3]

The matrix has one torch crossed with several Tritons, and an engine answers. Trials run in an interpreter
that holds torch and triton; the search begins with an empty ledger, and with no image but the first cell's.
Then images of further Tritons are removed and built again, one at a time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from docker.errors import ImageNotFound

from repro.cells import Cell, expand, newest_released, select
from repro.config import load
from repro.engines.client import connect
from repro.engines.tags import cell_tag

HERE = Path(__file__).parent
FURTHER = 3
"""Images of further Tritons that are built one at a time."""


def timed(command: list[str]) -> float:
    """Seconds of a command, which prints; a failure ends the benchmark."""
    print("$", *command, flush=True)
    began = time.perf_counter()
    status = subprocess.run(command, check=False).returncode
    seconds = time.perf_counter() - began
    print(f"({seconds:.1f} s)\n", flush=True)
    if status:
        raise SystemExit(f"error: {' '.join(command)} ended with {status}")
    return seconds


def trials(python: str) -> tuple[float, float]:
    """Trials per second over a bare loop's, and over those of one pytest process a trial."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "seconds.json")
        options = ["--gpu", "--trials", "300", "--rounds", "3", "--json", str(kept)]
        timed([python, str(HERE / "trials.py"), *options])
        [rows] = json.loads(kept.read_text()).values()
    seconds = {row: statistics.median(values) for row, values in rows.items()}
    ours = seconds["this plugin"]
    return seconds["bare loop"] / ours, seconds["a process a trial"] / ours


def further(cells: list[Cell], requirements: tuple[str, ...], build: list[str]) -> float:
    """Median of seconds to build an image of another Triton, `repro build` as a whole."""
    client, seconds = connect(), []
    for cell in cells[:FURTHER]:
        with suppress(ImageNotFound):
            client.images.remove(cell_tag(cell, requirements), force=True)
        seconds.append(timed([*build, "--only", cell.id]))
    return statistics.median(seconds)


def main() -> None:
    """Run all of it, and print the table last."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--matrix", default="matrix.yaml")
    parser.add_argument("--only", default="*", help="cells, one torch's")
    parser.add_argument("--state", default=".repro", help="where no trial is yet")
    parser.add_argument("--python", default="python3", help="interpreter that holds torch and triton")
    given = parser.parse_args()
    matrix = load(Path(given.matrix))
    cells = select(expand(matrix, "gpu").cells, [given.only])
    first = newest_released(cells)
    repro = [str(Path(sys.executable).with_name("repro"))]
    place = ["--matrix", given.matrix, "--state", given.state]
    build = [*repro, "build", *place]

    bare, process = trials(given.python)
    base = timed([*build, "--only", first.id])
    search = timed([*repro, "bisect", *place, "--only", given.only, "--axis", "triton"])
    others = [c for c in cells if c.triton != first.triton and not c.env and not c.ptxas]
    image = further(others, tuple(matrix.subject.requirements), build)
    versions = len({cell.triton for cell in cells})
    print(f"{'':58}{'measured':>10}{'goal':>16}")
    for what, measured, goal in (
        ("trials per second, of a bare loop's", f"{bare:.2f}", "at least 0.9"),
        ("trials per second, of a pytest process a trial", f"{process:.0f}", "at least 100"),
        ("first image, base and torch included, s", f"{base:.0f}", ""),
        ("image of a further Triton, s", f"{image:.1f}", "at most 10"),
        (f"search among {versions} Tritons, {len(others)} images included, s", f"{search:.0f}", "below 180"),
    ):
        print(f"{what:58}{measured:>10}{goal:>16}")


if __name__ == "__main__":
    main()
