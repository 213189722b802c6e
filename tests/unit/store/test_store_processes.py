"""Several processes at one ledger, and processes that are killed."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from block_files import CELL, SERIES, assert_tallies_are_true, contents, end, write_block

from repro.store import Ledger

INGEST = """
import sys
from pathlib import Path
from repro.store import Ledger
with Ledger.open(Path(sys.argv[1])) as ledger:
    for round in range(int(sys.argv[2])):
        for folder in sorted(Path(sys.argv[3]).iterdir()):
            ledger.ingest(folder)
"""


def test_processes_write_at_once(home):
    for block in range(6):
        events = [end(i, "PASSED" if i % 3 else "FAILED", seed=block * 1000 + i) for i in range(1000)]
        write_block(home, f"b{block}", [CELL, *events], seeds=range(block * 1000, (block + 1) * 1000))
    command = [sys.executable, "-c", INGEST, str(home / "ledger.sqlite"), "3", str(home / "blocks")]
    writers = [subprocess.Popen(command, cwd=Path(__file__).parents[2]) for _ in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    with Ledger.open(home / "ledger.sqlite") as ledger:
        assert (ledger.tally(SERIES).n, ledger.tally(SERIES).failed) == (6000, 2004)
        assert len(list(ledger.trials(repeats=True))) == 6000
        assert_tallies_are_true(ledger)


WRITE_AND_INGEST = """
import itertools, json, sys
from pathlib import Path
from repro.store import Ledger
home = Path(sys.argv[1])
folder = home / "blocks" / "b1"
with Ledger.open(home / "ledger.sqlite") as ledger, (folder / "records.jsonl").open("a") as file:
    print("ready", flush=True)
    for seed in itertools.count(int(sys.argv[2])):
        outcome = "FAILED" if seed % 3 == 0 else "PASSED"
        record = {"event": "end", "trial": seed, "seed": seed, "outcome": outcome, "time": seed}
        record["message"] = "m" * 300
        print(json.dumps(record), file=file, flush=True)
        if seed % 7 == 0:
            ledger.ingest(folder)
"""


@pytest.mark.slow
def test_kill_at_random_moments_loses_nothing(home, tmp_path):
    rng = random.Random(11)
    folder = write_block(home, "b1", [CELL], seeds=range(20_000))
    for kill in range(20):
        command = [sys.executable, "-c", WRITE_AND_INGEST, str(home), str(kill * 1000)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
        with writer:
            assert writer.stdout.readline() == b"ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(rng.uniform(0.0, 0.15))
            writer.kill()
        with (folder / "records.jsonl").open("ab") as file:
            file.write(b"\n")  # as the next writer of a block ends a torn line
    recorded = (folder / "records.jsonl").read_bytes().count(b'"message": "' + b"m" * 300 + b'"}\n')
    with (
        Ledger.open(home / "ledger.sqlite") as ledger,
        Ledger.rebuild(tmp_path / "x.sqlite", home / "blocks") as anew,
    ):
        ledger.catch_up()
        assert contents(ledger) == contents(anew)
        assert ledger.tally(SERIES).n == recorded > 100
        assert_tallies_are_true(ledger)
