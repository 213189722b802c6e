"""A report of a large ledger: processor time and memory do not follow the number of trials."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from report_ledgers import big_ledger

CODE = """
import resource, sys, time
from repro.cli import run
began = time.process_time()
run(["report", "--no-script", "--state", sys.argv[1]])
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def cost(folder):
    """Seconds of processor time, and megabytes."""
    command = [sys.executable, "-c", CODE, str(folder)]
    done = subprocess.run(command, cwd=Path.cwd(), capture_output=True, text=True, check=True, timeout=300)
    seconds, kilobytes = done.stdout.splitlines()[-1].split()
    assert "fails in 8.3 % of trials" in done.stdout
    return float(seconds), int(kilobytes) / 1024


@pytest.mark.slow
def test_half_a_million_trials(tmp_path):
    big_ledger(tmp_path / "few" / "ledger.sqlite", trials=40_000, cells=20)
    big_ledger(tmp_path / "many" / "ledger.sqlite", trials=500_000, cells=20)
    few, many = cost(tmp_path / "few"), cost(tmp_path / "many")
    assert many[0] < 3
    assert many[0] < 2 * few[0] + 0.5  # for twelve times as many trials
    assert many[1] < min(500, few[1] + 50)
