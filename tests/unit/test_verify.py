"""`repro verify-fix`: what is fixed is told from what fails less often, otherwise or elsewhere."""

import random
from dataclasses import replace

import pytest
from fake_engine import FakeEngine, bench, cell, subject

from repro.errors import NotReadyError, NotReproducedError
from repro.run import Order, Target
from repro.store import Ledger
from repro.subject.patching import Changes
from repro.trial.records import Mode
from repro.verify import Kind, Pace, Side, Verifying, asked, claim_of, sentences, to_json

FAILS = {"outcome": "FAILED", "signature": {"key": "AssertionError in test_it: comparison 1"}}
ELSEWHERE = {"outcome": "FAILED", "signature": {"key": "AssertionError in test_it: comparison 3"}}
RAISES = {"outcome": "FAILED_OTHERWISE", "signature": {"key": "RuntimeError in test_it: kernel()"}}
CODE = Changes(code=("kernel.py",))


def every(number):
    """Every so manieth seed fails."""
    return lambda seed: FAILS if seed % number == 1 else "PASSED"


def by_chance(rate):
    chance = random.Random(5)
    return lambda seed: FAILS if chance.random() < rate else "PASSED"


@pytest.fixture
def verify(tmp_path):
    """Run some seeds as it is; then hold a fixed side against it. The result, and the engine."""

    def go(as_is, fixed, *, seeds=60, changed=CODE, keeps=True, pace=None, later=None, passes_too=False):
        sides = {"as-is": as_is, "fixed": fixed}
        engine = FakeEngine(keeps=keeps)
        engine.trial = lambda cell, seed: sides[engine.requests[-1]["subject"]](seed)
        with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
            kit = bench(tmp_path, ledger, engine)
            both = []
            for revision in sides:
                tested = replace(subject(tmp_path), revision=revision)
                target = Target(cell=cell(), subject=tested)
                prepared = kit.runner.prepare(target)
                both.append(Side(runner=kit.runner, target=target, prepared=prepared, gpu=None))
            kit.runner.run(both[0].target, both[0].prepared, Order(seeds=range(seeds)))
            sides["as-is"] = later or as_is
            tally = both[0].tally()
            verifying = Verifying(
                runner=kit.runner,
                as_is=both[0],
                fixed=both[1],
                changed=changed,
                claim=claim_of(tally.failed, tally.passed, 0.95),
                pace=pace or Pace(block=25),
                clock=engine.clock,
                say=kit.said.append,
                passes_too=passes_too,
            )
            return verifying.run(), engine

    return go


def test_fixed(verify):
    found, _ = verify(every(6), lambda seed: "PASSED")
    assert (found.verdict.kind, found.shown) == (Kind.FIXED, True)
    assert found.verdict.clean >= found.claim.needed
    assert found.verdict.ruled_out <= found.claim.known.low
    pairs = found.seen.pairs
    assert (pairs.a_only, pairs.b_only, pairs.both, pairs.n) == (10, 0, 0, 60)
    assert [each.as_is for each in found.seen.replayed] == [(6, 6)] * 4
    assert [each.fixed for each in found.seen.replayed] == [(0, 6)] * 4
    assert sentences(found)[0].startswith("Fixed: 0 failures in 5")


def test_seeds_that_failed_come_first_and_none_runs_twice(verify):
    found, engine = verify(every(6), lambda seed: "PASSED")
    ran = [
        each["seeds"] for each in engine.requests if each["subject"] == "fixed" and each["mode"] == "seeds"
    ]
    assert ran[0] == [1, 7, 13, 19, 25, 31, 37, 43, 49, 55]
    flat = [seed for seeds in ran for seed in seeds]
    assert len(flat) == len(set(flat)) == len(found.seen.fixed)


def test_both_sides_take_turns(verify):
    _, engine = verify(every(6), lambda seed: "PASSED")
    turns = [each["subject"] for each in engine.requests if each["mode"] == "replay"]
    assert turns == ["as-is", "fixed", "as-is", "fixed"]


def test_not_fixed_is_known_after_the_replays(verify):
    found, engine = verify(every(6), every(6))
    assert found.verdict.kind is Kind.NOT_FIXED
    assert not [each for each in engine.requests if each["subject"] == "fixed" and each["mode"] == "seeds"]


def test_fewer_failures(verify):
    found, _ = verify(every(3), every(6))
    assert found.verdict.kind is Kind.FEWER
    assert sentences(found)[0].startswith("Not fixed, but fewer failures: ")
    pairs = found.seen.pairs
    assert (pairs.a_only, pairs.b_only, pairs.both) == (10, 0, 10)


def test_a_test_that_fails_by_chance_is_not_fixed_by_nothing(verify):
    found, _ = verify(by_chance(0.3), by_chance(0.3), seeds=100)
    assert found.verdict.kind is Kind.NOT_FIXED
    assert found.seen.pairs.n == 100


def test_a_failure_by_chance_that_is_fixed(verify):
    found, _ = verify(by_chance(0.3), lambda seed: "PASSED")
    assert found.verdict.kind is Kind.FIXED


@pytest.mark.parametrize(
    ("fixed", "said"),
    [
        (RAISES, "RuntimeError in test_it: kernel()"),
        (ELSEWHERE, "AssertionError in test_it: comparison 3"),
        ("COMPILE_ERROR", "a kernel does not compile"),
        ("SKIPPED", "the test is skipped"),
    ],
)
def test_it_fails_otherwise(verify, fixed, said):
    found, _ = verify(every(6), lambda seed: fixed if seed % 6 == 1 else "PASSED")
    assert (found.verdict.kind, found.shown) == (Kind.FAILS_OTHERWISE, False)
    assert f"fails otherwise now: {said} (" in sentences(found)[0]


def test_another_failure_that_was_there_before_is_none_of_the_fix(verify):
    def as_is(seed):
        return RAISES if seed % 10 == 0 else every(6)(seed)

    found, _ = verify(as_is, lambda seed: RAISES if seed % 10 == 0 else "PASSED")
    assert found.verdict.kind is Kind.FIXED
    assert found.verdict.clean == len([s for s in found.seen.fixed if s % 10 and s not in found.seen.picked])


def test_new_failures(verify):
    found, _ = verify(every(6), lambda seed: FAILS if seed % 6 == 3 else "PASSED")
    assert found.verdict.kind is Kind.NEW_FAILURES
    assert "others fail that had passed (seeds 3, 9, 15, 21, 27)" in sentences(found)[0]


def test_trials_end_it_before_it_is_shown(verify):
    found, _ = verify(every(6), lambda seed: "PASSED", pace=Pace(block=10, most=20))
    assert found.verdict.kind is Kind.NOT_SHOWN
    assert len(found.seen.fixed) == 20
    assert "Not shown: no failure in 10 runs" in sentences(found)[0]
    assert found.notes == ("--trials ended it after 20 seeds",)


def test_a_budget_that_is_spent(verify):
    found, _ = verify(every(6), lambda seed: "PASSED", pace=Pace(budget=0.0))
    assert found.verdict.kind is Kind.NOT_SHOWN
    assert found.notes == ("the budget ended it after 0 seeds of the fixed side",)


def test_as_it_is_it_no_longer_fails(verify):
    with pytest.raises(NotReproducedError, match="as it is, the subject no longer fails: 0 of") as refused:
        verify(every(6), lambda seed: "PASSED", later=lambda seed: "PASSED")
    assert "where 10 of 60 had" in refused.value.what


def test_without_kept_inputs_seeds_are_replayed(verify):
    found, _ = verify(every(6), lambda seed: "PASSED", keeps=False)
    assert {each.seed for each in found.seen.replayed} == {1, 7, 13, 19}
    assert found.verdict.kind is Kind.FIXED


def test_a_test_that_is_not_there_any_more(verify):
    found, _ = verify(every(6), lambda seed: "TEST_MISSING")
    assert found.verdict.kind is Kind.FAILS_OTHERWISE


def test_an_engine_that_goes_away_is_no_verdict(verify):
    with pytest.raises(NotReadyError, match="trials could not run"):
        verify(every(6), lambda seed: "INFRA")


def test_a_loosened_tolerance_is_said(verify):
    def compared(atol, fails):
        comparison = {"index": 1, "function": "assert_close", "atol": atol, "rtol": 0.01, "size": 8}
        return lambda seed: FAILS if fails(seed) else {"outcome": "PASSED", "comparisons": [comparison]}

    changed = Changes(test=("tests/test_op.py",))
    found, _ = verify(
        compared(1e-3, lambda seed: seed % 6 == 1), compared(10, lambda _: False), changed=changed
    )
    assert found.verdict.kind is Kind.FIXED
    assert sentences(found)[1] == (
        "The fix changes the test alone (`tests/test_op.py`): this says that the test no longer fails, and"
        " nothing of the code, which is as it was."
    )
    assert to_json(found)["looser"] == ["comparison 1 has atol 10 in place of 0.001"]
    assert "comparison 1 has atol 10 in place of 0.001" in sentences(found)


def test_what_a_claim_needs_is_said_before():
    claim = claim_of(8, 92, 0.95)
    assert (1 - claim.known.low) ** claim.needed <= 0.05 < (1 - claim.known.low) ** (claim.needed - 1)
    assert asked(claim) == (
        f"as it is, 8 of 100 (8.0 %; 1.9 % to 20.0 %) fail; 0 failures in {claim.needed} runs of the fixed"
        " side show a rate below 1.9 %: a failure as frequent as that would be seen with 95.0 %"
    )


def test_a_claim_is_rarely_wrong():
    """A fix that does nothing is called one in 1 of 20 cases at most: here the failure is pure chance."""
    chance, wrong = random.Random(11), 0
    for _ in range(400):
        failed = sum(chance.random() < 0.1 for _ in range(100))
        if failed:
            claim = claim_of(failed, 100 - failed, 0.95)
            wrong += not any(chance.random() < 0.1 for _ in range(claim.needed))
    assert wrong <= 400 * 0.05


def test_the_mode_of_replays(verify):
    _, engine = verify(every(6), lambda seed: "PASSED")
    assert {each["mode"] for each in engine.requests} == {Mode.SEEDS.value, Mode.REPLAY.value}
