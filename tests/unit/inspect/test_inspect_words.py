"""What stands out in a probe, where two part, and how it is said."""

import json

from seen import Apart, Derivative, Gradcheck, Precision, Rounding, probe, step

from repro.inspect import words
from repro.inspect.marks import marks
from repro.inspect.parting import parting
from repro.inspect.plain import parting_to_json, probe_to_json

# What stands out -------------------------------------------------------------------------------------------


def told(steps):
    return {mark.what: mark.step.n for mark in marks(steps)}


def test_the_first_and_the_largest_are_marked():
    steps = [
        step(0, growth=1.0),
        step(1, growth=50.0, cancellation=1e5, subnormal=1),
        step(2, growth=40.0, error=Rounding(max_ulp=1e6), high=1e9),
        step(3, nan=1, inf=2),
        step(4, nan=2, growth=50.0, error=Rounding(max_ulp=1e6)),
    ]
    assert told(steps) == {
        "first NaN": 3, "first Inf": 3, "first subnormal": 1, "largest error": 2,
        "strongest cancellation": 1, "largest growth": 1, "largest magnitude": 2,
    }  # fmt: skip


def test_what_is_usual_is_not_marked():
    steps = [step(0, growth=2.0, cancellation=10.0, error=Rounding(max_ulp=3.0))]
    assert told(steps) == {"largest magnitude": 0}
    assert told([]) == {}


# Where two part --------------------------------------------------------------------------------------------


def test_the_same_bits():
    steps = [step(n) for n in range(5)]
    found = parting(steps, list(steps))
    assert found.identical
    assert words.parting_sentences(found, "a", "b") == [
        "all 5 steps are the same in a and b, to the last bit"
    ]


def test_first_by_rounding_and_then_in_earnest():
    here = [step(n) for n in range(4)]
    there = [step(0), step(1, digest="x", high=2.0001), step(2, digest="y", high=2.5), step(3)]
    found = parting(here, there)
    assert (found.bits[0].n, found.numbers[0].n, found.path) == (1, 2, None)
    assert parting_to_json(found)["numbers"] == {"op": "aten.mul.Tensor", "here": 2, "there": 2}
    assert "step 2 and 2, aten.mul.Tensor: min -1 and -1, max 2 and 2.5" in "\n".join(
        words.parting_sentences(found, "a", "b")
    )


def test_steps_that_one_takes_alone():
    here = [step(0), step(1, "aten.add.Tensor"), step(2, "aten.sub.Tensor", digest="s")]
    there = [step(0), step(1, "aten.sub.Tensor", digest="s"), step(2, "aten.div.Tensor")]
    found = parting(here, there)
    assert (found.matched, found.here, found.there) == (2, 1, 1)
    assert (found.bits, found.path.op) == (None, "aten.add.Tensor")
    assert not found.identical


def test_a_nan_in_one_is_no_rounding():
    assert parting([step(0)], [step(0, nan=1, digest="x")]).numbers is not None


# Words -----------------------------------------------------------------------------------------------------


def test_a_long_table_keeps_its_ends_and_its_marks():
    seen = probe(*(step(n, nan=n >= 70) for n in range(100)))
    rows = words.step_rows(seen, 20)
    numbers = [row[0] for row in rows if row[0] != "…"]
    assert len(numbers) == 20
    assert numbers[:4] == ["0", "1", "2", "3"]
    assert numbers[-2:] == ["98", "99"]
    assert "70" in numbers
    assert [row[-1] for row in rows if row[0] == "70"] == ["first NaN"]
    assert len({len(row) for row in rows}) == 1
    assert len(words.step_rows(seen, 0)) == 100


def derivative(element, **more):
    return Derivative(comparison=2, element=element, **more)


def test_a_jump_and_a_wrong_gradient_are_said():
    fits = {"left": 1.0, "right": -1.0, "actual_fits": "left", "expected_fits": "right"}
    wrong = {"jump": False, "actual_fits": "none", "expected_fits": "both"}
    seen = probe(
        step(0),
        precisions=[
            Precision(comparison=2, element=(1,), truth=1.0, wrong="actual"),
            Precision(comparison=2, element=(2,), why="a kernel gave it"),
            Precision(comparison=2, element=(3,), truth=1.0, wrong="neither", control=True),
        ],
        derivatives=[
            *(derivative((1,), side=side, jump=True, **fits) for side in ("actual", "expected")),
            *(derivative((2,), side=side, **wrong) for side in ("actual", "expected")),
            derivative((3,), why="no time"),
        ],
    )
    assert words.sentences(seen)[1:] == [
        "against float64, the actual side is wrong at 1 of 2 failing elements",
        "no float64 value for 1 failing element: a kernel gave it",
        "the derivative jumps at 1 of 2 failing elements measured",
        "the actual gradient is the derivative on neither side at 1 of 2 failing elements measured",
        "no derivative for 1 failing element: no time",
    ]
    assert words.derivative_rows(seen.derivatives)[0] == (
        "2", "[1]", "actual", "-", "-", "1", "-1", "-", "yes", "left", "right",
    )  # fmt: skip
    assert len(words.derivative_rows(seen.derivatives)) == 4
    assert [row[1] for row in words.precision_rows(seen.precisions)] == ["[1]", "[2]", "[3] (passes)"]


def test_a_probe_that_changed_the_outcome_says_so():
    told = words.sentences(probe(step(0), outcome="PASSED", same_outcome=False))
    assert told[0].startswith("under the probe the trial came to PASSED, without it to FAILED")


def test_no_steps_and_no_end_are_said():
    assert words.sentences(probe(trouble="the test loads no torch")) == ["the test loads no torch"]
    assert "no operation of torch" in words.sentences(probe())[0]
    assert words.sentences(type(probe())()) == [
        "the process died under the probe: what it wrote until then is all there is"
    ]


def test_json_has_no_numbers_that_are_none():
    plain = probe_to_json(probe(step(0, low=float("-inf"), nan=1)))
    assert json.loads(json.dumps(plain, allow_nan=False))["steps"][0]["min"] == "-inf"
    assert plain["marks"][0] == {"step": 0, "what": "first NaN"}


# gradcheck -------------------------------------------------------------------------------------------------


def test_what_gradcheck_says():
    apart = (Apart(element=(0, 2), numerical=3.0, analytical=2.0), Apart(element=(1, 0)))
    checks = (
        Gradcheck(elements=6, of=6, passed=True),
        Gradcheck(side="expected", elements=4, of=9, passed=False, apart=apart),
        Gradcheck(comparison=1, elements=1, of=1, passed=False, message="not finite"),
        Gradcheck(comparison=2, why="there was no time left for it"),
    )
    seen = probe(gradchecks=checks)
    about = "torch.autograd.gradcheck of the {} gradient in comparison {}: "
    assert words.gradient_sentences(seen) == [
        about.format("actual", 0) + "passes at all 6 elements",
        about.format("expected", 0) + "fails at 2 of 4 elements; [0, 2] is 2, by differences 3",
        about.format("actual", 1) + "fails (not finite)",
        about.format("actual", 2) + "not run, there was no time left for it",
    ]
    assert set(words.gradient_sentences(seen)) <= set(words.sentences(seen))
    assert json.loads(json.dumps(probe_to_json(seen)))["gradchecks"][1]["apart"][0]["element"] == [0, 2]
