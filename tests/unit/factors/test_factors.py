"""Environment variables, varied one at a time: what is run, and what is said of it."""

import random
from dataclasses import replace

import pytest
from fake_engine import FakeEngine, bench, cell, subject

from repro.cells import Cell
from repro.factors import Varying, Verdict, judge_factors, known_factors, to_json
from repro.factors.judging import Pairs
from repro.factors.known import FACTORS, Factor, Host, chosen, why_not
from repro.run import Order, Target
from repro.stats import PairedCounts
from repro.store import Ledger
from repro.trial.records import Mode

HASH = next(factor for factor in FACTORS if factor.name == "PYTHONHASHSEED=0")
FUSION = next(factor for factor in FACTORS if factor.name == "TRITON_DEFAULT_FP_FUSION=0")
ON_GPU = cell(cuda="cu130")


def compared(ratio):
    return [{"index": 0, "passed": ratio <= 1, "max_abs": ratio * 1e-3, "max_rel": 0.1, "ratio": ratio}]


def outcome(failed, ratio=0.5):
    return {"outcome": "FAILED" if failed else "PASSED", "comparisons": compared(ratio)}


@pytest.fixture
def vary(tmp_path):
    """Vary factors over a fake engine; the effects by name, and the engine."""

    def go(trial, factors, *, seeds=60, base=ON_GPU, gpus=1, before=None, until=1e9, clock=None):
        engine = FakeEngine(trial=trial)
        with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
            kit = bench(tmp_path, ledger, engine, gpu_model="H100")
            target = Target(cell=base, subject=subject(tmp_path))
            prepared = kit.runner.prepare(target)
            if before:
                kit.runner.run(target, prepared, before)
            varying = Varying(
                runner=kit.runner, target=target, prepared=prepared, gpu=0 if gpus else None,
                host=Host(gpus=gpus, engine="venv"), seeds=range(seeds), clock=clock or engine.clock,
                until=until, say=lambda line: None,
            )  # fmt: skip
            effects = varying.run(factors)
            environments = {trial.series.cell for trial in ledger.trials()}
        return {effect.factor.name: effect for effect in effects}, engine, environments

    return go


def test_the_one_that_matters_is_found(vary):
    """Fusion makes a third of the seeds fail; the others change numbers or nothing."""

    def trial(cell, seed):
        env = dict(cell.env)
        fused = env.get("TRITON_DEFAULT_FP_FUSION") != "0"
        ratio = 0.4 if "CUBLAS_WORKSPACE_CONFIG" in env else 0.5
        return outcome(fused and seed % 3 == 0, 1.5 if fused and seed % 3 == 0 else ratio)

    found, engine, cells = vary(trial, [one for one in FACTORS if one.usual])
    assert found["TRITON_DEFAULT_FP_FUSION=0"].verdict is Verdict.MATTERS
    assert found["TRITON_DEFAULT_FP_FUSION=0"].pairs.worst == (1.5, 0.5)
    assert found["CUBLAS_WORKSPACE_CONFIG=:4096:8"].verdict is Verdict.NUMBERS
    assert found["PYTHONHASHSEED=0"].verdict is Verdict.NOTHING
    assert found["CUDA_VISIBLE_DEVICES=1"].reason == "there is one GPU, and trials see it alone"
    assert sum(effect.verdict is Verdict.MATTERS for effect in found.values()) == 1
    assert sum(len(seeds) for seeds in engine.seeds) == 60 * 10, "the side without runs twice for all"
    assert f"{ON_GPU.id}-TRITON_DEFAULT_FP_FUSION=0" in cells, "a cell of its own: rates are not mixed"


def test_numbers_that_change_by_themselves_are_no_finding(vary):
    """Sums in any order: beside such a test only the factor that changes every number changes numbers."""
    chance = random.Random(3)

    def trial(cell, seed):
        fused = dict(cell.env).get("TRITON_DEFAULT_FP_FUSION") != "0"
        return outcome(False, chance.choice([0.5, 0.5, 0.5, 0.51]) if fused else 0.6)

    found, _, _ = vary(trial, [HASH, FUSION])
    assert found[HASH.name].verdict is Verdict.ITSELF
    assert found[FUSION.name].verdict is Verdict.NUMBERS
    assert 0 < found[HASH.name].again.changed < 60
    told = {one["factor"]: one for one in to_json(list(found.values()))}
    assert told[HASH.name]["changed_again"] == {"changed": found[HASH.name].again.changed, "measured": 60}


@pytest.fixture
def leftovers():
    """A test of uninitialised memory: a third of the seeds reads it, and each process has its own in it.

    Args of what is given: whether memory is clean in a process, by its number and environment.
    """

    def trials(clean):
        processes = {}

        def trial(cell, seed):
            process = (cell.env, seed >= 60)
            number = processes.setdefault(process, len(processes))
            failed = seed % 3 == 0 and not clean(number, dict(cell.env))
            return outcome(failed, 2.0 + number if failed else 0.5)

        return trial

    return trials


def test_a_process_that_differs_by_chance_is_no_effect(vary, leftovers):
    """The second process happens to find zeros in its memory: that is the one with the factor."""
    found, engine, _ = vary(leftovers(lambda number, env: number == 1), [HASH])
    effect = found[HASH.name]
    assert effect.verdict is Verdict.ONCE
    assert (effect.pairs.counts.a_only, effect.second.counts.a_only) == (20, 0)
    assert engine.seeds[-2:] == [list(range(60, 120))] * 2
    assert to_json([effect])[0]["second_pairs"]["both"] == 20


def test_time_is_up_before_the_second_process(vary, leftovers):
    begun = set()
    clean = leftovers(lambda number, env: begun.add(number) or number == 1)
    found, engine, _ = vary(clean, [HASH], until=3, clock=lambda: len(begun))
    assert engine.seeds == [list(range(60))] * 3
    assert found[HASH.name].verdict is Verdict.ONCE


def test_an_effect_on_a_test_that_changes_by_itself_shows_twice(vary, leftovers):
    found, _, _ = vary(leftovers(lambda number, env: "PYTHONHASHSEED" in env), [HASH, FUSION])
    assert found[HASH.name].verdict is Verdict.MATTERS
    assert found[HASH.name].second.counts.a_only == 20
    assert found[FUSION.name].second is None


def test_each_factor_has_a_kernel_cache_of_its_own(vary):
    _, engine, _ = vary(lambda cell, seed: outcome(False), [HASH, FUSION], seeds=3)
    assert len({job.cache for job in engine.jobs}) == 3
    assert [job.env for job in engine.jobs] == [
        {}, {"PYTHONHASHSEED": "0"}, {"TRITON_DEFAULT_FP_FUSION": "0"}
    ]  # fmt: skip


def test_trials_that_the_ledger_has_are_not_run_again(vary):
    _, engine, _ = vary(
        lambda cell, seed: outcome(seed == 1), [HASH], seeds=20, before=Order(seeds=range(15), gpu=0)
    )
    assert engine.seeds == [list(range(15)), list(range(15, 20)), list(range(20))]


def test_without_a_gpu(vary):
    found, _, _ = vary(lambda cell, seed: outcome(False), FACTORS, base=cell(), gpus=0, seeds=5)
    tried = [name for name, effect in found.items() if effect.verdict is not Verdict.UNTRIED]
    assert tried == ["PYTHONHASHSEED=0"]
    assert found["NVIDIA_TF32_OVERRIDE=0"].reason == "there is no GPU, so that nothing reads it"
    told = to_json(list(found.values()))
    assert {one["verdict"] for one in told} == {"nothing", "untried"}


def test_trials_that_end_otherwise(vary):
    found, _, _ = vary(lambda cell, seed: "COMPILE_ERROR" if cell.env else outcome(False), [FUSION], seeds=5)
    assert found[FUSION.name].reason == "5 trials neither passed nor failed as looked for"


def test_a_test_that_compares_nothing(vary):
    found, _, _ = vary(lambda cell, seed: "PASSED", [HASH], seeds=5)
    assert found[HASH.name].verdict is Verdict.UNSEEN


def test_time_is_up(vary):
    found, engine, _ = vary(lambda cell, seed: outcome(False), [HASH, FUSION], seeds=5, until=-1.0)
    assert {effect.reason for effect in found.values()} == {"time was up"}
    assert not engine.jobs


def test_environments_of_the_matrix_are_factors():
    named = replace(ON_GPU, env=(("OWN", "1"),))
    again = replace(ON_GPU, env=FUSION.env)
    every = known_factors([ON_GPU, named, again])
    assert [factor.name for factor in every[len(FACTORS) :]] == ["OWN=1"]
    assert [factor.name for factor in chosen(every, ["OWN", "NVIDIA_TF32_OVERRIDE=1"])] == [
        "NVIDIA_TF32_OVERRIDE=1",
        "OWN=1",
    ]
    assert "TRITON_INTERPRET" not in {factor.env[0][0] for factor in chosen(every, [])}


@pytest.mark.parametrize(
    ("factor", "cell", "host", "reason"),
    [
        (FUSION, replace(ON_GPU, env=FUSION.env), Host(gpus=1, engine="venv"), "has it already"),
        (
            FUSION,
            replace(ON_GPU, env=(("TRITON_INTERPRET", "1"),)),
            Host(gpus=1, engine="venv"),
            "interpreted",
        ),
        (FACTORS[7], ON_GPU, Host(gpus=2, engine="docker"), "sees no other"),
        (FACTORS[7], ON_GPU, Host(gpus=2, engine="venv"), ""),
    ],
)
def test_why_a_factor_is_not_tried(factor: Factor, cell: Cell, host: Host, reason: str):
    assert reason in why_not(factor, cell, host)
    assert bool(reason) == bool(why_not(factor, cell, host))


def test_false_discoveries_are_rare():
    """Ten factors without any effect on a failure by chance: in few of 200 tables is one called a finding."""
    chance, tables = random.Random(5), 0
    for _ in range(200):
        found = {}
        for number in range(10):
            pairs = [(chance.random() < 0.3, chance.random() < 0.3) for _ in range(100)]
            counts = PairedCounts(
                both=pairs.count((True, True)), a_only=pairs.count((True, False)),
                b_only=pairs.count((False, True)), neither=pairs.count((False, False)),
            )  # fmt: skip
            factor = Factor(env=(("X", str(number)),), what="")
            found[factor] = Pairs(counts=counts, measured=0, changed=0, worst=(None, None), others=0)
        tables += any(effect.verdict is Verdict.MATTERS for effect in judge_factors(found, {}))
    assert tables <= 0.05 * 200 + 2 * (0.05 * 0.95 * 200) ** 0.5


def test_the_mode_is_that_of_the_matrix(vary, tmp_path):
    """So that its trials count, and reports show the cells of factors beside the others."""
    _, engine, _ = vary(lambda cell, seed: outcome(False), [HASH], seeds=2)
    assert {request["mode"] for request in engine.requests} == {Mode.SEEDS.value}
