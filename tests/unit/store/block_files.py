"""Block files and ledgers for tests to look at."""

from __future__ import annotations

import json

from repro.store import Series
from repro.trial.records import Mode

H100 = "NVIDIA H100"
SERIES = Series(cell="torch2.9", revision="abc", test="test_op", mode=Mode.SEEDS, gpu=H100)
REPEATS = Series(cell="torch2.9", revision="abc", test="test_op", mode=Mode.REPEAT, gpu=H100)
CELL = {"event": "cell", "schema": 1, "time": 1.0, "gpu": H100, "torch": "2.9.0", "imported": ["torch"]}


def write_block(home, name, events, *, seeds=range(100), **asked):
    folder = home / "blocks" / name
    folder.mkdir(parents=True, exist_ok=True)
    request = {"block": name, "cell": "torch2.9", "subject": "abc", "test": "test_op", "mode": "seeds"}
    (folder / "request.json").write_text(json.dumps({**request, "seeds": list(seeds), **asked}))
    append(folder, *events)
    return folder


def append(folder, *events):
    with (folder / "records.jsonl").open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


def end(trial, outcome, *, seed=None, at=None, **fields):
    seed = trial if seed is None else seed
    time = {} if at is None else {"time": at}
    return {
        "event": "end",
        "trial": trial,
        "seed": seed,
        "outcome": outcome,
        "duration": 0.5,
        **time,
        **fields,
    }


def contents(ledger):
    return ledger.tallies(), [(t.block, t.line, t.outcome, t.counted) for t in every_trial(ledger)]


def every_trial(ledger):
    return sorted(ledger.trials(repeats=True), key=lambda t: (t.block, t.line))


def assert_tallies_are_true(ledger):
    assert {tally.series: dict(tally.counts) for tally in ledger.tallies()} == ledger.recount()


def random_blocks(home, rng, blocks=12):
    """Blocks that overlap in their seeds and contradict each other; some times are equal."""
    outcomes = ["PASSED", "FAILED", "INFRA", "CRASHED", "BUILD_FAILED"]
    for number in range(blocks):
        ends = [
            end(i, rng.choice(outcomes), seed=rng.randrange(15), at=float(rng.randrange(6)))
            for i in range(30)
        ]
        mode = rng.choice(["seeds", "repeat"])
        write_block(
            home, f"b{number:02}", [CELL, *ends], mode=mode, cell=rng.choice(["torch2.9", "torch2.4"])
        )
