"""Commands as processes of their own: seconds, processor time, and the most memory that they held."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

REPRO = (sys.executable, "-c", "from repro.cli import main; main()")
ROOT = Path(__file__).parents[2]
COMMITS, CULPRIT = 5000, 3712


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One command, and what it may take.

    Args:
        name: for the table.
        folder: below the benchmark's, where it runs.
        arguments: of `repro`.
        seconds: limit on the time, or None.
        megabytes: limit on the memory.
        expected: what has to stand in its output.
        fresh: folder of results that is removed before each round.
    """

    name: str
    folder: str
    arguments: Sequence[str]
    seconds: float | None
    megabytes: int
    expected: Callable[[Path], str] = lambda _: ""
    fresh: str = ""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What a command took: medians over rounds, and the most memory of any."""

    measure: Measure
    seconds: float
    processor: float
    megabytes: float

    @property
    def missed(self) -> bool:
        """Whether a limit is missed, on a machine that does nothing else."""
        limit = self.measure.seconds
        return self.megabytes > self.measure.megabytes or (limit is not None and self.seconds > limit)


MEASURES = (
    Measure(name="status", folder="ledger", arguments=("status",), seconds=3, megabytes=500),
    Measure(
        name="matrix, nothing left to run",
        folder="ledger",
        arguments=("matrix", "--engine", "venv"),
        seconds=3,
        megabytes=500,
        expected=lambda _: "CRASHED, such as seed",
    ),
    Measure(name="report", folder="ledger", arguments=("report", "--no-script"), seconds=3, megabytes=500),
    Measure(
        name="plan of 10,008 cells",
        folder="plan",
        arguments=("plan", "--engine", "venv"),
        seconds=2,
        megabytes=500,
        expected=lambda _: "10008 to build",
    ),
    Measure(
        name=f"bisect along {COMMITS:,} commits",
        folder="search",
        arguments=("bisect", "--engine", "host", "--repo", "repository", "--test", "test_it", "--test-file",
                   "test_op.py", "--json"),
        seconds=None,
        megabytes=300,
        expected=lambda home: (home / "search" / "culprit").read_text(encoding="utf-8"),
        fresh=".repro",
    ),
)  # fmt: skip


def measure(wanted: Measure, home: Path, rounds: int) -> Taken:
    """Run a command some times.

    Raises:
        RuntimeError: it fails, or says something else than expected.
    """
    seconds, processor, megabytes = zip(*(_once(wanted, home) for _ in range(rounds)), strict=True)
    return Taken(
        measure=wanted, seconds=median(seconds), processor=median(processor), megabytes=max(megabytes)
    )


def _once(wanted: Measure, home: Path) -> tuple[float, float, float]:
    place = home / wanted.folder
    if wanted.fresh:
        shutil.rmtree(place / wanted.fresh, ignore_errors=True)
    printed = place / "printed.txt"
    with printed.open("w+b") as file:
        began = time.perf_counter()
        process = subprocess.Popen(
            [*REPRO, *wanted.arguments], cwd=place, stdout=file, stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        taken = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    text = printed.read_text(encoding="utf-8")
    if process.returncode or wanted.expected(home) not in text:
        raise RuntimeError(f"{wanted.name}: status {process.returncode}\n{text[-2000:]}")
    return taken, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def table(rows: Sequence[Taken]) -> str:
    """The measurements as Markdown."""
    lines = [
        "| command | seconds | of them on the processor | limit | MB | limit |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        limit = f"{row.measure.seconds:g}" if row.measure.seconds is not None else "-"
        lines.append(
            f"| {row.measure.name} | {row.seconds:.2f} | {row.processor:.2f} | {limit} |"
            f" {row.megabytes:.0f} | {row.measure.megabytes} |"
        )
    return "\n".join(lines)
