"""Trials that stand beside the rates: recorded, and never in the ledger."""

import json

from fake_engine import DIED, FakeEngine, bench

from repro.run import Order
from repro.store import Ledger


def test_records_aside_stay_out_of_the_ledger(tmp_path):
    engine = FakeEngine(trial=lambda cell, seed: "FAILED")
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        kit = bench(tmp_path, ledger, engine)
        ran = kit.run(Order(seeds=range(3), aside="minimize", extra={"constants": {"a.py:1:0": 2}}))
        assert not kit.outcomes
    assert [folder.parent for folder in ran.folders] == [tmp_path / "minimize"]
    assert json.loads((ran.folders[0] / "request.json").read_text())["constants"] == {"a.py:1:0": 2}
    with Ledger.rebuild(tmp_path / "ledger.sqlite") as ledger:
        assert not list(ledger.trials())


def test_once_is_one_process(tmp_path):
    engine = FakeEngine(trial=lambda cell, seed: DIED if seed == 1 else "PASSED")
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ran = bench(tmp_path, ledger, engine).run(Order(seeds=range(5), aside="minimize", once=True))
    assert len(engine.requests) == 1
    assert ran.gave_up == "the process was ended by signal 11: last words"


def test_a_cache_of_its_own(tmp_path):
    engine = FakeEngine()
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        bench(tmp_path, ledger, engine).run(Order(seeds=range(1), cache=tmp_path / "kernels"))
    assert engine.jobs[0].cache == tmp_path / "kernels"
