"""Known vulnerabilities in what the lock files pin, by pip-audit: a finding fails.

    .venv/bin/python .ci/audit.py

Where the advisory database cannot be reached, nothing was checked: that is said, and is no failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from repro.engines import indexes
from repro.engines.pythons import uv_program

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("kit", "dev")
SECONDS = 300
NOT_CHECKED = "not checked: no advisory database reachable"

Run = Callable[[Sequence[str]], tuple[str, str]]
"""Runs pip-audit with further arguments; what it printed, and what it said."""


def pip_audit(arguments: Sequence[str]) -> tuple[str, str]:
    """Run the newest pip-audit in an environment of its own, with the package indexes that pip is told."""
    configured = indexes.configured().only_reachable()
    command = [uv_program(), "tool", "run", "--quiet", "--no-config", *configured.uv_flags(), "pip-audit"]
    environment = {**os.environ, **configured.environment()}
    try:
        done = subprocess.run(
            [*command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        return "", "no answer in time"
    return done.stdout, done.stderr


def audit(lock: str, run: Run) -> tuple[list[str], int, int, str]:
    """Findings, packages that were looked up, packages that could not be, and why nothing was, or "".

    Args:
        lock: a file of pinned requirements.
    """
    flags = ["--format", "json", "--progress-spinner", "off", "--disable-pip", "--require-hashes"]
    printed, said = run([*flags, "--requirement", lock])
    try:
        packages: list[dict[str, Any]] = json.loads(printed)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return [], 0, 0, (said.strip().splitlines() or ["pip-audit printed nothing"])[-1][:200]
    looked_up = [package for package in packages if "skip_reason" not in package]
    findings = [_finding(package, found) for package in looked_up for found in package["vulns"]]
    return findings, len(looked_up), len(packages) - len(looked_up), ""


def _finding(package: dict[str, Any], found: dict[str, Any]) -> str:
    fixed = ", ".join(found["fix_versions"]) or "no release"
    return f"{package['name']} {package['version']}: {found['id']}, fixed in {fixed}"


def main(run: Run = pip_audit) -> int:
    """Audit every lock file; 1 where there is a finding."""
    status = 0
    for name in LOCKS:
        lock = f"requirements/{name}.lock"
        findings, looked_up, skipped, why = audit(lock, run)
        for finding in findings:
            print(f"{lock}: {finding}")
        if findings:
            status = 1
        elif looked_up == 0:
            print(f"{lock}: {NOT_CHECKED}" + (f" ({why})" if why else ""))
        else:
            rest = f"; {skipped} could not be looked up" if skipped else ""
            print(f"{lock}: no known vulnerability in {looked_up} packages{rest}")
    return status


if __name__ == "__main__":
    sys.exit(main())
