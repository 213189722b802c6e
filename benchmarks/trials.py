"""What a trial costs: the plugin beside a bare loop, pytest-repeat, and one pytest process per trial.

    .venv/bin/python benchmarks/trials.py [--trials 200] [--rounds 5] [--processes 1] [--gpu]

Every row runs the same test functions in the same interpreter; rounds are interleaved, so that a noisy
machine disturbs all rows alike. The first three rows are timed between one call of the test and the next,
without start-up and warm-up; a process per trial pays its start-up each time, and that is its row.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ROOT / "repro" / "trial"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
WARM = 20

HEAD = """import os, time
STARTS = []

def began():
    STARTS.append(time.perf_counter())
    if len(STARTS) == int(os.environ["CALLS"]):
        with open(os.environ["TIMES"], "w") as file:
            file.write(repr(STARTS))
"""

SUBJECT = {
    "test_plain.py": HEAD
    + """
def test_it():
    began()
    assert sum(range(100)) == 4950
""",
    "test_torch.py": HEAD
    + """
import torch
from torch.testing import assert_close

def test_it():
    began()
    for _ in range(4):
        x = torch.rand(16, 16)
        assert_close(x, x + 1e-7)
""",
}

ON_GPU = {
    "test_gpu.py": HEAD
    + f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests" / "suite")!r}]
import torch
from cases import REPORTED, draw, run
from msda_triton import native_multiscale_deformable_attention, triton_multiscale_deformable_attention

def operator(*arguments):
    return triton_multiscale_deformable_attention(*arguments, arithmetic="aten")

def test_it():
    began()
    inputs = draw(REPORTED, torch.float32)
    found = run(operator, inputs, "border", False)
    wanted = run(native_multiscale_deformable_attention, inputs, "border", False)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-2)
"""
}
"""The reported test, with the arithmetic that lets it pass at every seed."""

BARE = """import importlib, sys
test = importlib.import_module(sys.argv[1]).test_it
for _ in range(int(sys.argv[2])): test()
"""


def bare(folder: Path, name: str, trials: int) -> float:
    """Seconds a call in a plain loop."""
    return between_calls([sys.executable, "-c", BARE, name, str(WARM + trials)], folder, trials)


def plugin(folder: Path, name: str, trials: int) -> float:
    """Seconds a trial of this plugin."""
    records = folder / "records"
    shutil.rmtree(records, ignore_errors=True)
    records.mkdir()
    request = {
        "root": str(folder),
        "test_file": f"{name}.py",
        "test": "test_it",
        "records": str(records),
        "seeds": list(range(WARM + trials)),
    }
    path = records / "request.json"
    path.write_text(json.dumps(request))
    return between_calls([sys.executable, "-m", "repro_trial", str(path)], folder, trials)


def repeat(folder: Path, name: str, trials: int) -> float:
    """Seconds a repetition of pytest-repeat."""
    count = ["--count", str(WARM + trials)]
    return between_calls([*PYTEST, *count, f"{name}.py"], folder, trials)


def between_calls(command: list[str], folder: Path, trials: int) -> float:
    """Seconds from one call of the test to the next, as the test itself saw them, less the warm-up."""
    times = folder / "times"
    run(command, folder, CALLS=str(WARM + trials), TIMES=str(times))
    starts = json.loads(times.read_text())
    return float((starts[-1] - starts[WARM]) / (len(starts) - 1 - WARM))


def process(folder: Path, name: str, trials: int) -> float:
    """Seconds a pytest process that runs one trial."""
    seconds = []
    for _ in range(trials):
        began = time.perf_counter()
        run([*PYTEST, f"{name}.py"], folder)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def run(command: list[str], folder: Path, **variables: str) -> None:
    """Run quietly, torch on one thread; a failure ends the benchmark with what was written."""
    env = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "CALLS": "0", **variables}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1, help="pytest processes a round; 0: none")
    parser.add_argument("--gpu", action="store_true", help="the reported test on the GPU, and no other")
    parser.add_argument("--json", type=Path, help="also write the seconds of each round into this file")
    options = parser.parse_args()
    subject = ON_GPU if options.gpu else SUBJECT
    rows = {"bare loop": bare, "this plugin": plugin, "pytest-repeat": repeat, "a process a trial": process}
    if not options.processes:
        del rows["a process a trial"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.copytree(PLUGIN, folder / "repro_trial")
        for file, text in subject.items():
            (folder / file).write_text(text)
        names = [Path(file).stem for file in subject]
        measured = {name: table(folder, name, rows, options) for name in names}
    if options.json:
        options.json.write_text(json.dumps(measured))


def table(folder: Path, name: str, rows, options: argparse.Namespace) -> dict[str, list[float]]:
    """Measure and print one subject: seconds a trial, a row's rounds."""
    seconds: dict[str, list[float]] = {row: [] for row in rows}
    for _ in range(options.rounds):
        for row, measure in rows.items():
            trials = options.processes if measure is process else options.trials
            seconds[row].append(measure(folder, name, trials))
    base = statistics.median(seconds["bare loop"])
    least = min(seconds["bare loop"])
    ours = statistics.median(seconds["this plugin"])
    print(f"\n{name}: {options.rounds} rounds of {options.trials} trials; ms a trial")
    print(f"{'':20}{'median':>12}{'over bare':>12}{'times plugin':>14}{'fastest':>12}{'over bare':>12}")
    for row, values in seconds.items():
        median, fastest = statistics.median(values), min(values)
        print(
            f"{row:20}{median * 1e3:12.3f}{(median - base) * 1e3:12.3f}{median / ours:14.2f}"
            f"{fastest * 1e3:12.3f}{(fastest - least) * 1e3:12.3f}"
        )
    return seconds


if __name__ == "__main__":
    main()
