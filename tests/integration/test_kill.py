"""The kit is killed at random moments, or interrupted: no finished trial is lost or counted twice."""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_line import Kit

from repro.store import Ledger

pytestmark = pytest.mark.slow
KILLS = 20
TRIALS = 800
SLOW = """
import time
def test_it():
    time.sleep(0.02)
    assert seed() % 5
"""


@pytest.fixture
def kit(tmp_path):
    made = Kit(tmp_path, tmp_path / ".repro")
    made.plant(SLOW)
    return made


def start(kit):
    """Begin the run, in a session of its own so that a kill of the kit reaches nothing else."""
    command = kit.command("matrix", "--engine", "host", "--half-width", 0, "--trials", TRIALS)
    return subprocess.Popen(
        command, cwd=kit.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def lines(kit):
    """Every whole line of every block file."""
    found = {}
    for path in (kit.state / "blocks").glob("*/records.jsonl"):
        whole = path.read_bytes().rpartition(b"\n")[0]
        found[path] = whole.splitlines()
    return found


def finished(kit):
    """Trials that ended, as often as the evidence has them."""
    events = [json.loads(line) for every in lines(kit).values() for line in every]
    return [(event["seed"], event["outcome"]) for event in events if event["event"] == "end"]


def trial_processes(kit):
    """Processes that run trials of this state folder."""
    needle, found = str(kit.state).encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"repro_trial" in (line := (folder / "cmdline").read_bytes()) and needle in line:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def until(condition, patience=60.0):
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.005)


def test_killed_twenty_times_and_nothing_is_lost(kit):
    rng = random.Random(20)
    before, kills = {}, 0
    for _ in range(KILLS):
        process, known = start(kit), len(finished(kit))
        # Half of the kills come among trials, the others at any moment of a start.
        if rng.random() < 0.5:
            until(lambda p=process, k=known: len(finished(kit)) > k or p.poll() is not None)
        time.sleep(rng.uniform(0.0, 0.4))
        kills += process.poll() is None
        process.kill()
        process.wait()
        now = lines(kit)
        for path, every in before.items():
            assert now[path][: len(every)] == every
        before = now
    assert kills == KILLS, "it was done too early: more trials are needed"
    assert 0 < len({seed for seed, _ in finished(kit)}) < TRIALS
    told = kit.matrix("--engine", "host", "--trials", TRIALS)
    assert trial_processes(kit) == []
    rate = told["cells"][0]["rate"]
    assert (rate["failed"], rate["trials"], told["cells"][0]["others"]) == (TRIALS // 5, TRIALS, {})
    now = lines(kit)
    assert all(now[path][: len(every)] == every for path, every in before.items())
    # No seed ran twice, so none that had finished was taken for lost.
    assert sorted(seed for seed, _ in finished(kit)) == list(range(TRIALS))
    with Ledger.open(kit.state / "ledger.sqlite") as ledger:
        assert {tally.series: dict(tally.counts) for tally in ledger.tallies()} == ledger.recount()
        assert not ledger.garbled_lines()


def test_the_next_run_ends_what_a_killed_one_left(kit):
    process = start(kit)
    until(lambda: (kit.state / "blocks").exists() and finished(kit))
    process.kill()
    process.wait()
    (orphan,) = trial_processes(kit)
    again = start(kit)
    until(lambda: not Path(f"/proc/{orphan}/cmdline").exists() or again.poll() is not None)
    assert again.poll() is None
    again.kill()
    again.wait()
    kit.matrix("--engine", "host", "--trials", 5)
    assert trial_processes(kit) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_nothing_running(kit, number):
    process = start(kit)
    until(lambda: (kit.state / "blocks").exists() and finished(kit))
    os.kill(process.pid, number)
    assert process.wait(timeout=20) == 130
    assert trial_processes(kit) == []
    assert not list((kit.state / "running").iterdir())
    kept = finished(kit)
    kit.matrix("--engine", "host", "--trials", len(kept) + 5)
    assert sorted(seed for seed, _ in finished(kit)) == list(range(len(kept) + 5))
