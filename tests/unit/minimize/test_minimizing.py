"""From a failing seed to the smallest case, over an engine that plays the cell."""

import hashlib
import json
import math
import random
from types import SimpleNamespace

import pytest
from fake_engine import FakeEngine, bench

from repro.bisect.kept import Inputs
from repro.errors import NotReproducedError
from repro.minimize import Minimizing, Options, to_json
from repro.minimize.blocks import FOLDER, Blocks
from repro.minimize.case import Kind, Parameter
from repro.minimize.journal import Journal, Ran
from repro.minimize.kept import kept_case
from repro.minimize.often import AsOften
from repro.minimize.shrink import Verdict
from repro.minimize.trying import ByRate
from repro.store import Ledger

KEY = "AssertionError in test_it: comparison 0"
FAILED = {"outcome": "FAILED", "signature": {"key": KEY}}
CASE = {
    "event": "case",
    "arguments": [
        {"name": "aligned", "kind": "bool", "value": True},
        {"name": "dtype", "kind": "dtype", "value": "float32"},
    ],
    "constants": [
        {"address": "t.py:1:4", "name": "N", "value": 100, "statement": 1},
        {"address": "t.py:2:4", "name": "M", "value": 64, "statement": 2},
    ],
}
START = {"aligned": True, "dtype": "float32", "t.py:1:4": 100, "t.py:2:4": 64}


class Cell:
    """Answers requests as the plugin would.

    Args:
        rate: how often a case fails, by its values; 1.0 and 0.0 are certain.
        effect: whether a case differs from the one before in anything that is measured.
        record: whether the failure outlives the recording of draws.
    """

    def __init__(self, rate, *, effect=lambda values: str(values), record=True):
        self.rate, self.effect, self.record = rate, effect, record
        self.chance = random.Random(7)
        self.engine = FakeEngine(trial=self.trial, begin=self.begin)
        self.begun = False

    def begin(self, cell):
        self.begun = False
        self.engine.clock.now += 1.0

    @property
    def request(self):
        return self.engine.jobs[-1].request

    @property
    def values(self):
        return {**START, **self.request.get("arguments", {}), **self.request.get("constants", {})}

    def trial(self, cell, seed):
        if not self.begun:
            self.begun = True
            self.first_line()
        return FAILED if self.chance.random() < self.rate(self.values) else "PASSED"

    def first_line(self):
        """What a block tells beside its trials."""
        if self.request.get("expand") == "case":
            self.tell(CASE)
        reduce = self.request.get("reduce")
        if reduce and self.rate(self.values) == 1.0 and (self.record or not reduce["record"]):
            self.tell({"event": "reduced", **self.reduced(reduce)})

    def reduced(self, reduce):
        digest = hashlib.sha256(self.effect(self.values).encode()).hexdigest()
        told = {"seed": 7, "signature": {"key": KEY}, "digest": digest, "same": digest == reduce["known"]}
        if told["same"] or not reduce["record"]:
            return {**told, "path": None}
        records = self.engine.jobs[-1].records
        (records / "inputs").mkdir()
        content = json.dumps(self.values).encode()
        (records / "inputs" / "seed7.pt").write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        elements = [{"draw": 0, "op": "rand", "index": [0], "value": 1.0}]
        return {
            **told,
            "path": "inputs/seed7.pt",
            "sha256": sha256,
            "left": 1,
            "drawn": 9,
            "elements": elements,
        }

    def tell(self, event):
        with (self.engine.jobs[-1].records / "records.jsonl").open("a") as file:
            file.write(json.dumps(event) + "\n")


@pytest.fixture
def minimize(tmp_path):
    """Minimize over a fake cell; what came of it, and what was said."""

    def go(rate, *, options=None, budget=1e9, state="state", **more):
        cell, said = Cell(rate, **more), []
        with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
            kit = bench(tmp_path / state, ledger, cell.engine)
            target = kit.target()
            blocks = Blocks(
                runner=kit.runner, target=target, prepared=kit.runner.prepare(target), gpu=None,
                clock=cell.engine.clock, until=budget, journal=Journal.open(kit.runner.state / FOLDER, {}),
            )  # fmt: skip
            found = Minimizing(blocks=blocks, options=options or Options(), say=said.append).run(7)
            assert not kit.outcomes, "no altered trial enters the ledger"
        return found, said, cell.engine

    return go


def certain(holds):
    return lambda values: 1.0 if holds(values) else 0.0


def test_a_failure_that_replays(minimize):
    found, _, engine = minimize(certain(lambda v: v["t.py:1:4"] >= 3 and v["dtype"] != "float64"))
    told = to_json(found)
    assert (told["arguments"], told["constants"]) == ({"aligned": False}, {"t.py:1:4": 3, "t.py:2:4": 1})
    assert (told["by"], told["complete"], told["again"]["failed"], told["again"]["trials"]) == (
        *("inputs", True, 5, 5),
    )
    assert told["dtypes"] == {"float64": False, "float16": True, "bfloat16": True, "float32": True}
    assert json.loads((engine.jobs[-1].inputs.parent / told["inputs"]).read_text())["t.py:1:4"] == 3
    assert told["signature"] == KEY
    assert [step["verdict"] for step in told["steps"]].count("stays") >= 3
    assert told["processes"] == len(engine.jobs)


def test_each_case_gets_the_known_inputs_and_fresh_seeds(minimize):
    _, _, engine = minimize(certain(lambda v: True), options=Options(seeds=4))
    cases = [request for request in engine.requests if request.get("reduce")][1:]
    assert all(
        request["replay"] == {str(request["seeds"][0]): request["replay"][str(request["seeds"][0])]}
        for request in cases
    )
    fresh = [seed for request in cases for seed in request["seeds"][1:]]
    assert len(fresh) == len(set(fresh)) == 4 * len(cases)


def test_what_has_no_effect_is_not_called_smaller(minimize):
    found, _, _ = minimize(
        certain(lambda v: v["t.py:1:4"] >= 20),
        effect=lambda values: str((values["t.py:1:4"], values["dtype"])),
    )
    assert {one.name for one in found.without_effect} == {"aligned", "M"}
    assert found.case.values == {"t.py:1:4": 20}


def test_a_failure_that_goes_away_when_draws_are_recorded(minimize):
    found, _, _ = minimize(certain(lambda v: v["t.py:1:4"] >= 50), record=False)
    assert (found.by, to_json(found)["inputs"], found.case.values["t.py:1:4"]) == ("seeds", None, 50)
    assert found.again == (5, 5)


def test_a_failure_by_chance_keeps_its_rate(minimize):
    """Smaller N fails as often; smaller M ten times less."""
    found, said, _ = minimize(lambda v: 0.3 if v["t.py:2:4"] >= 32 else 0.03)
    assert found.by == "rate"
    assert (found.case.values["t.py:1:4"], found.case.values["t.py:2:4"]) == (1, 32)
    assert found.again[1] > 5
    assert found.rate[0] >= 8
    assert any("rates decide" in line for line in said)


def test_a_seed_that_does_not_fail(minimize):
    with pytest.raises(NotReproducedError, match="0 of 150 trials failed"):
        minimize(lambda v: 0.0, options=Options(most=150))


def test_time_is_up(minimize):
    """Each process takes a second; the smallest case so far is what comes of it, and is run again."""
    found, said, _ = minimize(certain(lambda v: v["t.py:1:4"] >= 3), budget=6.0)
    assert not found.complete
    assert found.again == (5, 5)
    assert len(found.steps) == 4
    assert "time is up; the case may get smaller yet" in said


def test_it_goes_on_where_its_time_was_up(minimize):
    """The same answer as without a stop; twice ran only what time cut short, and the two last looks."""
    rate = certain(lambda v: v["t.py:1:4"] >= 3 and v["dtype"] != "float64")
    short, _, first = minimize(rate, budget=6.5)
    found, _, second = minimize(rate)
    whole, _, third = minimize(rate, state="other")
    assert (short.complete, found.complete) == (False, True)
    assert to_json(found) == to_json(whole)
    assert len(second.jobs) < len(third.jobs)
    assert len(first.jobs) + len(second.jobs) == len(third.jobs) + 3
    again, _, fourth = minimize(rate)
    assert (to_json(again), fourth.jobs) == (to_json(whole), [])


def test_a_line_that_was_cut_off_counts_for_nothing(tmp_path):
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "records.jsonl").touch()
    journal = Journal.open(tmp_path, {"seed": 1})
    journal.add("one", Ran(folder=tmp_path / "a", seconds=1.0))
    journal.add("one", Ran(folder=tmp_path / "b", seconds=2.0))
    (file,) = tmp_path.glob("*.jsonl")
    whole = file.read_text()
    file.write_text(whole + '{"key": "two", "fol')
    journal = Journal.open(tmp_path, {"seed": 1})
    journal.add("two", Ran(folder=tmp_path / "c", seconds=3.0))
    assert file.read_text().startswith(whole + '{"key": "two", "folder": "c"')
    (tmp_path / "b" / "records.jsonl").unlink()
    journal = Journal.open(tmp_path, {"seed": 1})
    assert [journal.take("one"), journal.take("one"), journal.take("two")] == [
        Ran(folder=tmp_path / "a", seconds=1.0), None, Ran(folder=tmp_path / "c", seconds=3.0),
    ]  # fmt: skip
    assert len(Journal.open(tmp_path, {"seed": 2})) == 0
    assert len(Journal.open(tmp_path, {"seed": 1}, fresh=True)) == 0


@pytest.mark.parametrize("rate", [0.5, 0.2])
@pytest.mark.parametrize(("share", "kept"), [(0.5, True), (1.0, False)])
def test_the_chance_of_a_wrong_answer_is_as_stated(rate, share, kept):
    """200 first cases, each measured until 20 failures, and a case of each at half its rate or at all of it.

    5 % go wrong at most, less two standard errors.
    """
    chance, wrong = random.Random(3), 0

    def failures(rate, size):
        return sum(chance.random() < rate for _ in range(size))

    class Fake(ByRate):
        def _batch(self, case, size):
            failed = failures(share * rate, size)
            return failed, size - failed, 0

    class Endless:
        left = 1.0

    for _ in range(200):
        failed = run = 0
        while failed < 20:
            failed, run = failed + failures(rate, 50), run + 50
        often = AsOften(failed=failed, passed=run - failed, share=0.5, error=0.05)
        trying = Fake(blocks=Endless(), parameters=[], key="", often=often, next_seed=0)
        wrong += (trying.attempt(None).verdict is Verdict.STAYS) is kept
    assert wrong <= 0.05 * 200 + 2 * (0.05 * 0.95 * 200) ** 0.5


def test_a_rate_that_is_well_known_is_held_against_itself_and_its_share():
    """With a million trials of the first case the test is Wald's for two known rates."""
    often = AsOften(failed=200_000, passed=800_000, share=0.5, error=0.05)
    expected = 7 * math.log(0.2 / 0.1) + 23 * math.log(0.8 / 0.9)
    assert often.log_odds(7, 23) == pytest.approx(expected, rel=1e-2)
    assert often.least == 0.1
    assert (often.decide(0, 60), often.decide(30, 60), often.decide(1, 5)) == (False, True, None)


@pytest.mark.parametrize("wrong", [{"failed": 0}, {"passed": -1}, {"share": 1.0}, {"error": 0.5}])
def test_a_test_of_a_rate_needs_one(wrong):
    with pytest.raises(ValueError, match="no test of a rate"):
        AsOften(**{"failed": 3, "passed": 9, "share": 0.5, "error": 0.05, **wrong})


def test_a_dtype_by_name_is_no_option_to_simplify():
    one = Parameter(
        key="d", name="d", kind=Kind.DTYPE, value=0, argument=True, choices=("float32", "float64")
    )
    assert one.shown(1) == "float64"


def test_a_kept_case_is_what_a_request_takes(tmp_path):
    subject = SimpleNamespace(test="test_it", revision="r1")
    with pytest.raises(NotReproducedError, match="no smallest case of test_it"):
        kept_case(tmp_path, subject)
    file = tmp_path / "inputs" / f"{'ab' * 32}.pt"
    file.parent.mkdir()
    file.touch()
    found = {
        **{"test": "test_it", "subject": "r1", "cell": "c", "seed": 7, "inputs": f"inputs/{file.name}"},
        **{"arguments": {"n": 1}, "constants": {"t.py:1:4": 2}},
    }
    (tmp_path / "minimized.json").write_text(json.dumps(found))
    kept = kept_case(tmp_path, subject)
    assert kept.inputs == Inputs(seed=7, identity=int("ab" * 7 + "a", 16), file=file)
    assert (kept.cell, kept.seed) == ("c", 7)
    assert kept.request == {"arguments": {"n": 1}, "constants": {"t.py:1:4": 2}}
    for change in ({"subject": "r2"}, {"seed": None}, {"inputs": "inputs/gone.pt"}, {"constants": 3}):
        (tmp_path / "minimized.json").write_text(json.dumps({**found, **change}))
        with pytest.raises(NotReproducedError):
            kept_case(tmp_path, subject)
