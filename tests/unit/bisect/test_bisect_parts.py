"""The parts of a search: what it costs, earlier names of a test, kept inputs, one commit's verdict."""

import hashlib
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_engine import subject

from repro.bisect.check import Answer, Rates
from repro.bisect.estimate import Plan, estimate
from repro.bisect.evidence import side
from repro.bisect.kept import take
from repro.bisect.names import TestNames
from repro.bisect.pace import Pace
from repro.bisect.tryout import Counts, own_seeds
from repro.run import Target
from repro.search import DEFAULT_MODEL
from repro.store import KeptInputs, Series
from repro.trial.records import Mode

SERIES = Series(cell="c", revision="r", test="t", mode=Mode.SEEDS)


def plan(**more):
    about = {
        "candidates": 64,
        "known": {0: (0, 60), 63: (12, 28)},
        "before": 0.0,
        "after": 0.3,
        "confidence": 0.95,
        "model": DEFAULT_MODEL,
        "pace": Pace(trial=0.01, start=1.0, build=2.0, runs=1, builds=1),
        "batch": lambda trials: trials,
    }
    return Plan(**{**about, **more})


def test_an_estimate_says_what_a_search_will_take():
    found = estimate(plan())
    assert 4 <= found.visits <= 20
    assert 20 <= found.trials <= 400
    assert found.seconds <= found.long
    assert found.decided == 1.0


def test_a_budget_that_is_too_small_leaves_candidates():
    found = estimate(plan(budget=4.0))
    assert found.decided < 1.0
    assert found.width > 1
    assert found.long <= 10


def test_rare_failures_cost_more():
    rare = estimate(plan(known={0: (0, 3000), 63: (9, 2991)}, after=0.003), runs=2)
    assert rare.trials > 5 * estimate(plan(), runs=2).trials


@pytest.mark.parametrize(("good", "bad"), [(0.0, 0.1), (0.02, 0.2), (0.0, 1.0)])
def test_a_commit_is_judged_wrongly_as_rarely_as_stated(good, bad):
    """Wald's bound holds for the mean over many commits; 400 a side leave a little slack."""
    rates, generator = Rates(good=good, bad=bad, error=0.05), random.Random(1)
    for rate, wrong in ((good, Answer.BAD), (bad, Answer.GOOD)):
        errors = sum(_judge(rates, rate, generator) is wrong for _ in range(400))
        assert errors / 400 <= 0.05 + 0.03


def _judge(rates, rate, generator):
    failed = passed = 0
    while (answer := rates.decide(failed, passed)) is None:
        fails = generator.random() < rate
        failed, passed = failed + fails, passed + (not fails)
    return answer


def test_one_failure_is_enough_where_good_commits_never_fail():
    assert Rates(good=0.0, bad=0.1, error=0.01).decide(1, 100) is Answer.BAD


@pytest.mark.parametrize("rates", [(0.2, 0.2, 0.01), (0.3, 0.2, 0.01), (0.0, 0.2, 0.5), (0.0, 1.1, 0.01)])
def test_rates_that_make_no_sense_are_refused(rates):
    good, bad, error = rates
    with pytest.raises(ValueError):  # noqa: PT011 - three messages
        Rates(good=good, bad=bad, error=error)


def test_trials_take_sides():
    before, after = Counts(passed=100), Counts(failed=10, passed=90)
    assert side(Counts(failed=3, passed=20), before, after) > 3
    assert side(Counts(passed=80), before, after) < -3
    assert abs(side(Counts(passed=3), before, after)) < 1


def test_own_seeds_fit_every_generator():
    seeds = [own_seeds(str(number)) for number in range(500)]
    assert all(2**31 <= seed < 2**32 - 4096 for seed in seeds)
    assert len(set(seeds)) > 490


# Names -----------------------------------------------------------------------------------------------------


def follow(test, earlier, ids):
    calls = []
    names = TestNames(earlier=earlier, tests=lambda target, prepared: calls.append(1) or ids)
    target = Target(cell=SimpleNamespace(id="c"), subject=subject(Path(), test=test))
    found = [names.follow(target, None) for _ in range(2)]
    assert len(calls) == 1  # collecting takes a process
    return found[0].subject.test


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        (["test_b[f32-border-False]", "test_b[f64-border-False]"], "test_b[f32-border-False]"),
        (["test_b[f32-border]", "test_b[f64-border]"], "test_b[f32-border]"),
        (["test_old[f32]", "test_old[f64]"], "test_old[f32]"),
        (["test_other"], "test_b[f32-border-False]"),
    ],
)
def test_a_test_is_followed_over_its_names(ids, found):
    assert follow("test_b[f32-border-False]", ["test_b[f32-border]", "*[f32]"], ids) == found


# Kept inputs -----------------------------------------------------------------------------------------------


def kept(state, content=b"bits", *, sha256=None, path="inputs/seed1.pt", seed=1, failed_again=True):
    folder = state / "blocks" / "b1"
    if path and not path.startswith(".."):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return KeptInputs(
        series=SERIES,
        seed=seed,
        repetition=0,
        block="b1",
        path=path,
        sha256=hashlib.sha256(content).hexdigest() if sha256 is None else sha256,
        failed_again=failed_again,
        same_elements=True,
    )


def test_kept_inputs_are_copied_out_of_reach_of_trials(tmp_path):
    (found,) = take([kept(tmp_path)], tmp_path, 3)
    assert found.file.read_bytes() == b"bits"
    assert found.file.stat().st_mode & 0o222 == 0
    assert found.identity == int(hashlib.sha256(b"bits").hexdigest()[:15], 16)


def test_inputs_that_are_not_what_was_recorded_are_not_used(tmp_path):
    (tmp_path / "blocks").mkdir()
    (tmp_path / "secret").write_bytes(b"bits")
    wrong = [
        kept(tmp_path, sha256="0" * 64),
        kept(tmp_path, path="../../secret"),
        kept(tmp_path, failed_again=False),
    ]
    assert take(wrong, tmp_path, 3) == []
    link = tmp_path / "blocks" / "b1" / "inputs" / "link.pt"
    link.symlink_to(tmp_path / "secret")
    sha256 = hashlib.sha256(b"bits").hexdigest()
    linked = replace(kept(tmp_path), path="inputs/link.pt", sha256=sha256)
    assert take([linked], tmp_path, 3) == []


def test_a_seed_can_stand_for_its_inputs(tmp_path):
    (found,) = take([kept(tmp_path, path="", seed=7)], tmp_path, 3)
    assert (found.identity, found.file) == (7, None)
