"""Each cause is told from the others by the evidence alone."""

import math

import pytest
from evidences import (
    FAILING,
    PASSING,
    comparison,
    derivative,
    draw,
    element,
    evidence,
    look,
    recorded,
    shot,
    step,
    switched,
)

from repro.diagnose import Verdict
from repro.diagnose.causes import (
    CAUSES,
    autotuning,
    compiler,
    domain,
    formula,
    gradients,
    instability,
    jump,
    memory,
    race,
    summation,
    tolerance,
    weigh_all,
)
from repro.diagnose.causes import (
    draw as rare_draw,
)
from repro.diagnose.evidence import CellRate
from repro.diagnose.shots import Shot
from repro.diagnose.words import conclude
from repro.factors import Factor, judge_factors
from repro.factors.judging import Pairs
from repro.factors.known import NAMED
from repro.stats import PairedCounts
from repro.trial.records import Outcome

USUAL = evidence().switched
SWITCH = Factor(env=(("SWITCH", "0"),), what=NAMED)


def pairs(both=0, a_only=0):
    counts = PairedCounts(both=both, a_only=a_only, b_only=0, neither=8)
    return Pairs(counts=counts, measured=20, changed=0, worst=(2.0, 2.0), others=0)


def varying(error=2.0):
    """The same inputs fail now and then, by other errors."""
    runs = {seed: [shot(seed, failed=i % 2 == 0, error=error + i) for i in range(6)] for seed in FAILING}
    return {"same": runs, "fresh": []}


PLANTED = {
    jump.NAME: evidence(
        probes=look(
            [element()],
            [derivative(jump=True, left=1.0, right=3.0, actual_fits="left", expected_fits="right")],
        )
    ),
    formula.NAME: evidence(
        probes=look(
            [element()],
            [derivative(jump=False, left=3.0, right=3.0, actual_fits="none", expected_fits="both")],
        )
    ),
    domain.NAME: evidence(
        probes=look(
            [element(actual=math.nan)], steps=[step(), step(1, "aten.acos.default", nan=1), step(2, nan=1)]
        )
    ),
    gradients.NAME: evidence(
        probes=look(
            [element(actual=math.inf)], steps=[step(high=1e30), step(1, high=3e38), step(2, high=3e38, inf=1)]
        )
    ),
    instability.NAME: evidence(
        probes=look([element(actual_ulp=9e4)], steps=[step(op="aten.sub.Tensor", cancellation=1e5)])
    ),
    tolerance.NAME: evidence(recorded=[recorded(seed, ratio=1.5) for seed in FAILING]),
    summation.NAME: evidence(**varying()),
    race.NAME: evidence(**varying(), switched={**USUAL, **switched("float64", failed=True, error=2.0)}),
    memory.NAME: evidence(
        switched={
            **USUAL,
            **switched("poison", failed=True, nan=1),
            **switched("zero-fill", failed=False, error=0.0),
        }
    ),
    autotuning.NAME: evidence(
        same={seed: [shot(seed, failed=i == 0, order=i) for i in range(5)] for seed in FAILING},
        switched={**USUAL, **switched("first-config", failed=False, touched=2)},
    ),
    compiler.NAME: evidence(factors=judge_factors({SWITCH: pairs(a_only=12)}, {})),
    rare_draw.NAME: evidence(
        recorded=[],
        probes={},
        watched=[shot(seed, drawn=[draw(7)]) for seed in FAILING]
        + [shot(seed, failed=False, drawn=[draw(seed % 7)]) for seed in PASSING],
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_evidence_of_a_cause_puts_it_first(name):
    causes = weigh_all(PLANTED[name])
    assert (causes[0].name, causes[0].verdict) == (name, Verdict.SUPPORTED)
    assert causes[0].share == pytest.approx(1.0)
    assert causes[0].evidence
    assert f"The cause is {name}" in " ".join(conclude(PLANTED[name], causes))


def test_every_cause_has_its_evidence_here():
    assert set(PLANTED) == {name for name, _ in CAUSES}


def test_an_error_that_nothing_explains_supports_nothing():
    causes = weigh_all(evidence())
    assert [cause.name for cause in causes if cause.verdict is Verdict.SUPPORTED] == []
    assert "No suspected cause is supported" in " ".join(conclude(evidence(), causes))


def test_without_experiments_nothing_is_decided():
    empty = evidence(
        same={}, fresh=[], baseline=[], switched={}, watched=[], probes={}, missing={"repeat": "no time"}
    )
    verdicts = {cause.name: cause.verdict for cause in weigh_all(empty)}
    assert Verdict.SUPPORTED not in verdicts.values()
    assert verdicts[race.NAME] is Verdict.UNTESTED
    assert race.weigh(empty).evidence == ("no time",)


def test_every_verdict_has_its_reason():
    for made in (*PLANTED.values(), evidence()):
        for cause in weigh_all(made):
            assert cause.evidence, cause
            assert all(isinstance(line, str) and line for line in cause.evidence), cause


# Decoys: what looks like a cause and is none ---------------------------------------------------------------


def test_a_jump_that_the_values_are_not_at_the_sides_of():
    away = derivative(jump=True, left=7.0, right=9.0, actual_fits="none", expected_fits="none")
    assert jump.weigh(evidence(probes=look([element()], [away]))).verdict is Verdict.RULED_OUT


def test_where_a_jump_may_hide_no_formula_is_blamed():
    unknown = derivative(jump=None, why="there was no time left for it")
    differing = [element(actual_float64=1.0, expected_float64=3.0)]
    in_float64 = {**USUAL, **switched("float64", failed=True, error=2.0)}
    made = evidence(probes=look(differing, [unknown]), switched=in_float64)
    assert formula.weigh(made).verdict is Verdict.UNTESTED
    assert jump.weigh(made).verdict is Verdict.UNTESTED
    seen = evidence(probes=look(differing, []), switched=in_float64)
    assert formula.weigh(seen).verdict is Verdict.SUPPORTED


def test_memory_that_is_read_and_does_not_matter():
    made = evidence(
        switched={**USUAL, **switched("poison", failed=True, nan=1), **switched("zero-fill", failed=True)}
    )
    assert memory.weigh(made).verdict is Verdict.RULED_OUT


def test_numbers_that_vary_where_nothing_fails():
    noisy = [
        shot(3).__class__(
            **{**vars(shot(3)), "comparisons": [comparison(), comparison(i, passed=True, index=1)]}
        )
        for i in range(5)
    ]
    made = evidence(same={3: noisy}, fresh=[])
    assert made.varying == []
    assert race.weigh(made).verdict is Verdict.RULED_OUT


def test_an_autotuned_kernel_that_is_not_the_reason():
    made = evidence(switched={**USUAL, **switched("first-config", failed=True, touched=5)})
    assert autotuning.weigh(made).verdict is Verdict.RULED_OUT


def test_large_numbers_that_do_no_harm():
    made = evidence(probes=look([element()], steps=[step(high=1e30), step(1, nan=3)]))
    assert gradients.weigh(made).verdict is Verdict.RULED_OUT
    assert domain.weigh(made).verdict is Verdict.RULED_OUT


@pytest.mark.parametrize("cause", [gradients, instability, jump])
def test_what_the_probe_cannot_see_is_not_ruled_out(cause):
    """A test of numpy's numbers: no operation of torch's, no element of a tensor."""
    weighed = cause.weigh(evidence(probes=look()))
    assert weighed.verdict is Verdict.UNTESTED
    assert "no operation of it was seen" in weighed.evidence[0]
    assert cause.weigh(evidence(probes=look(steps=[step()]))).verdict is not Verdict.UNTESTED


def test_errors_far_beyond_the_tolerance_are_not_the_tolerances_fault():
    assert tolerance.weigh(evidence()).verdict is Verdict.RULED_OUT


@pytest.mark.parametrize(
    ("ulps", "inputs", "verdict"),
    [
        (100.0, 0.3, Verdict.SUPPORTED),
        (100.0, 4.0, Verdict.RULED_OUT),
        (5000.0, 200.0, Verdict.RULED_OUT),
        (5000.0, 120.0, Verdict.SUPPORTED),
        (100.0, None, Verdict.RULED_OUT),
        (300.0, None, Verdict.SUPPORTED),
    ],
)
def test_instability_is_an_error_far_beyond_what_the_inputs_make(ulps, inputs, verdict):
    found = evidence(
        recorded=[recorded(seed, ratio=1.5) for seed in FAILING],
        probes=look([element(actual_ulp=ulps, expected_ulp=0.4, inputs_ulp=inputs)]),
    )
    assert instability.weigh(found).verdict is verdict
    other = {Verdict.SUPPORTED: Verdict.RULED_OUT, Verdict.RULED_OUT: Verdict.SUPPORTED}
    assert tolerance.weigh(found).verdict is other[verdict]


BESIDE = derivative(jump=False, left=2.9, right=2.9, actual_fits="none", expected_fits="both")


def test_a_gradient_that_is_right_in_float64_is_no_wrong_formula():
    same = element(actual_ulp=9e4, actual_float64=3.0, expected_float64=3.0)
    causes = {cause.name: cause.verdict for cause in weigh_all(evidence(probes=look([same], [BESIDE])))}
    assert causes[formula.NAME] is Verdict.RULED_OUT
    assert causes[instability.NAME] is Verdict.SUPPORTED
    other = element(actual_ulp=9e4, actual_float64=1.0, expected_float64=3.0)
    assert formula.weigh(evidence(probes=look([other], [BESIDE]))).verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(("ratio", "verdict"), [(1.5, Verdict.RULED_OUT), (20.0, Verdict.SUPPORTED)])
def test_a_kernels_gradient_beside_the_derivative_by_rounding_or_by_more(ratio, verdict):
    """In float64 the test passes; errors that go on from those of passing trials are rounding."""
    found = evidence(
        recorded=[recorded(seed, ratio=ratio) for seed in FAILING], probes=look([element()], [BESIDE])
    )
    assert formula.weigh(found).verdict is verdict


@pytest.mark.parametrize(("relative", "verdict"), [(5.9e-8, Verdict.SUPPORTED), (1e-6, Verdict.RULED_OUT)])
def test_one_rounding_by_a_cast_of_the_test_leaves_rounding(relative, verdict):
    def runs(**fields):
        usual = comparison(fields.pop("error"), ratio=1.5, passed=fields["outcome"] is Outcome.PASSED)
        compared = [{**usual, "dtype": fields.pop("dtype"), "max_rel": fields.pop("relative")}]
        return [Shot(seed=3, order=0, comparisons=compared, touched={"float64": 1}, **fields)] * 8

    wide = runs(outcome=Outcome.PASSED, dtype="float64", relative=relative, error=1e-6)
    again = runs(outcome=Outcome.FAILED, dtype="float32", relative=1e-5, error=2e-5)
    found = evidence(
        recorded=[recorded(seed, ratio=1.5) for seed in FAILING],
        same={3: again},
        fresh=[],
        baseline=again,
        switched={**USUAL, "float64": wide},
    )
    assert tolerance.weigh(found).verdict is verdict


def test_a_switch_that_changes_nothing():
    made = evidence(factors=judge_factors({SWITCH: pairs(both=12)}, {}))
    assert compiler.weigh(made).verdict is Verdict.RULED_OUT
    untried = evidence(factors=judge_factors({}, {SWITCH: "nothing reads it"}))
    assert compiler.weigh(untried).verdict is Verdict.UNTESTED
    assert "SWITCH=0: nothing reads it" in compiler.weigh(untried).evidence


def test_cells_that_fail_at_the_same_seeds_clear_the_compiler():
    same = CellRate(cell="other", failed=12, trials=100, common=100, differ=0, chance=1.0)
    assert compiler.weigh(evidence(cells=[same])).verdict is Verdict.RULED_OUT
    other = CellRate(cell="other", failed=0, trials=100, common=100, differ=12, chance=2e-4)
    assert compiler.weigh(evidence(cells=[same, other])).verdict is Verdict.SUPPORTED


def test_a_draw_that_others_have_too_tells_nothing():
    watched = [shot(seed, drawn=[draw(7)]) for seed in FAILING]
    watched += [shot(seed, failed=False, drawn=[draw(7)]) for seed in PASSING]
    assert rare_draw.weigh(evidence(watched=watched)).verdict is Verdict.RULED_OUT


def test_a_few_values_that_failing_trials_share():
    watched = [shot(seed, drawn=[draw(16 * (1 + seed % 2))]) for seed in range(8)]
    watched += [shot(seed, failed=False, drawn=[draw(20 + seed % 5)]) for seed in PASSING]
    made = evidence(watched=watched, recorded=[], probes={})
    assert "is one of 16, 32" in rare_draw.weigh(made).evidence[0]


def test_a_race_is_no_formula():
    apart = [element(actual_float64=1.0, expected_float64=3.0)]
    made = evidence(
        **varying(), probes=look(apart), switched={**USUAL, **switched("float64", failed=True, error=2.0)}
    )
    assert [cause.name for cause in weigh_all(made) if cause.verdict is Verdict.SUPPORTED] == [race.NAME]


def test_unwritten_memory_is_no_formula():
    made = evidence(
        switched={
            **USUAL,
            **switched("poison", failed=True, nan=1),
            **switched("zero-fill", failed=False, error=0.0),
            **switched("float64", failed=True),
        }
    )
    assert [cause.name for cause in weigh_all(made) if cause.verdict is Verdict.SUPPORTED] == [memory.NAME]


@pytest.mark.parametrize("garbage", [1.7e38, math.inf, math.nan])
def test_garbage_in_unwritten_memory_is_nothing_else(garbage):
    """What happened to lie there overflows, or is not finite, without any step being to blame."""
    made = evidence(
        probes=look([element(actual=garbage)], steps=[step(), step(1, high=garbage, nan=1), step(2, nan=1)]),
        switched={
            **USUAL,
            **switched("poison", failed=True, nan=1),
            **switched("zero-fill", failed=False, error=0.0),
        },
    )
    assert [cause.name for cause in weigh_all(made) if cause.verdict is Verdict.SUPPORTED] == [memory.NAME]


def test_a_cure_by_chance_is_none():
    made = evidence(
        baseline=[shot(3, failed=i < 2) for i in range(20)],
        switched={**USUAL, "zero-fill": [shot(3, failed=False, touched={"zero-fill": 1}) for _ in range(20)]},
    )
    assert not made.cures("zero-fill")
