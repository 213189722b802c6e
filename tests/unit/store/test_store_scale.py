"""Questions that must not look at every trial, and ledgers that are older than their indexes."""

from __future__ import annotations

import random
import sqlite3

import pytest
from block_files import CELL, REPEATS, SERIES, append, end, random_blocks, write_block

from repro.errors import ReproError
from repro.store import Ledger, schema
from repro.store.queries import _NOT_PASSED
from repro.trial.records import Outcome


def looked_at(ledger, ask):
    """The lines of SQLite's plan for every question that is asked."""
    statements, plans = [], []
    ledger._db.set_trace_callback(statements.append)
    ask()
    ledger._db.set_trace_callback(None)
    for statement in statements:
        plans += [row[3] for row in ledger._db.execute(f"EXPLAIN QUERY PLAN {statement}")]
    return plans


@pytest.mark.parametrize(
    "ask",
    [
        lambda ledger: ledger.failing_seeds(SERIES),
        lambda ledger: list(ledger.trials(cell=SERIES.cell, outcomes=[Outcome.CRASHED, Outcome.TIMED_OUT])),
    ],
    ids=["failing seeds", "trials with an outcome"],
)
def test_trials_that_did_not_pass_are_found_by_their_index(ledger, ask):
    plans = looked_at(ledger, lambda: ask(ledger))
    assert any("trials_not_passed_by_seed (series=? AND outcome=?)" in plan for plan in plans), plans
    assert not any(plan.startswith("SCAN") for plan in plans), plans


def test_a_range_that_holds_the_whole_series_is_not_counted(home, ledger):
    ledger.ingest(
        write_block(home, "b1", [CELL, *(end(i, "FAILED" if i % 3 else "PASSED") for i in range(50))])
    )
    for seeds in (range(50), range(-5, 500)):
        plans = looked_at(ledger, lambda seeds=seeds: ledger.tally(SERIES, seeds))
        assert not any("seed>" in plan for plan in plans), plans
    assert any("seed>" in plan for plan in looked_at(ledger, lambda: ledger.tally(SERIES, range(49))))


@pytest.mark.parametrize("number", range(6))
def test_a_tally_of_a_range_is_what_its_trials_come_to(home, ledger, number):
    """Any range, whether it holds the series or not; seeds repeat and contradict each other."""
    rng = random.Random(number)
    random_blocks(home, rng)
    ledger.catch_up()
    for series in (tally.series for tally in ledger.tallies()):
        seeds = range(rng.randrange(-2, 8), rng.randrange(8, 18))
        counts: dict[Outcome, int] = {}
        about = {name: getattr(series, name) for name in ("cell", "revision", "test", "mode", "gpu")}
        for trial in ledger.trials(**about):
            if trial.seed in seeds:
                counts[trial.outcome] = counts.get(trial.outcome, 0) + 1
        assert dict(ledger.tally(series, seeds).counts) == counts
        failing = sorted({trial.seed for trial in ledger.trials(**about, outcomes=[Outcome.FAILED])})
        assert ledger.failing_seeds(series) == failing


def test_a_ledger_that_is_older_than_an_index_gets_it(home, ledger):
    ledger.ingest(write_block(home, "b1", [CELL, end(0, "FAILED"), end(1, "PASSED")]))
    ledger._db.execute("DROP INDEX trials_not_passed_by_seed")
    with Ledger.open(ledger.path) as again:
        assert again.failing_seeds(SERIES) == [0]
        assert any(
            "trials_not_passed" in plan for plan in looked_at(again, lambda: again.failing_seeds(SERIES))
        )
        (statement,) = again._db.execute(
            "SELECT sql FROM sqlite_master WHERE name = 'trials_not_passed_by_seed'"
        ).fetchone()
        assert _NOT_PASSED in statement, "a query uses it only where it has the same condition"


def test_catching_up_reads_what_grew_and_nothing_else(home, ledger, monkeypatch):
    for number in range(5):
        write_block(home, f"b{number}", [CELL, *(end(i, "PASSED", seed=10 * number + i) for i in range(3))])
    assert ledger.catch_up() == 15
    asked = []
    real = ledger.ingest
    monkeypatch.setattr(ledger, "ingest", lambda folder: asked.append(folder.name) or real(folder))
    assert (ledger.catch_up(), asked) == (0, [])
    append(home / "blocks" / "b3", end(7, "FAILED", seed=99))
    write_block(home, "b9", [CELL, end(0, "PASSED", seed=7)], mode="repeat")
    (home / "blocks" / "b8").mkdir()
    assert (ledger.catch_up(), asked) == (2, ["b3", "b8", "b9"])
    assert (ledger.failing_seeds(SERIES), ledger.tally(REPEATS).n) == ([99], 1)


def test_a_ledger_that_cannot_be_opened_is_closed(home, monkeypatch):
    """Python 3.13 warns of databases that nobody closes."""
    opened = []
    real = schema.connect
    monkeypatch.setattr(schema, "connect", lambda path: opened.append(real(path)) or opened[-1])
    write_block(home, "b1", [{**CELL, "schema": 99}, end(0, "PASSED")])
    with pytest.raises(ReproError, match="version 99"):
        Ledger.open(home / "ledger.sqlite")
    ((db, _),) = opened
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")
