"""What a failed build tells its user."""

from __future__ import annotations

import re
from pathlib import Path

from repro.cells import Cell
from repro.engines.process import Done
from repro.errors import BuildError

_MARKS = (
    (r"no space left on device", "the disk is full", "docker system prune, then the same command again"),
    (r"dns error|Could not resolve|Temporary failure in name resolution|Connection refused|timed out",
     "the build could not reach a package index", "repro doctor shows which indexes answer"),
    (r"certificate", "a certificate was not trusted",
     "set PIP_CERT to your bundle of certificate authorities"),
)  # fmt: skip


def build_failed(cell: Cell, what: str, done: Done, log: Path) -> BuildError:
    """The error for a build that failed or ran out of time."""
    if done.code is None:
        return BuildError(
            f"{cell.id}: building {what} took longer than its limit and was ended",
            why="a download that hangs, or a slow line",
            next_step=f"the log is {log}; limits.build_timeout in matrix.yaml allows more",
        )
    for pattern, why, fix in _MARKS:
        if re.search(pattern, done.output, re.IGNORECASE):
            return BuildError(
                f"{cell.id}: building {what} failed: {decisive_line(done.output)}",
                why=why,
                next_step=f"{fix}; the whole output is in {log}",
            )
    return BuildError(
        f"{cell.id}: building {what} failed: {decisive_line(done.output)}",
        next_step=f"the whole output is in {log}",
    )


def decisive_line(output: str) -> str:
    """The line of a build's output that says why it failed."""
    lines = [re.sub(r"^#\d+ [\d.]* *", "", line).strip() for line in output.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("------", " > "))]
    for mark in ("Because ", "error: ", "ERROR: ", "E: ", "Error: "):
        for line in lines:
            if mark in line and "executor failed" not in line and "failed to solve" not in line:
                return line[:400]
    return lines[-1][:400] if lines else "it wrote nothing"
