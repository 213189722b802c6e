"""What a probe wrote, read back."""

import math

from seen import write

from repro.inspect.records import Probe, Quotient, Rounding, read

STEP = {
    "event": "step", "n": 3, "op": "aten.sub.Tensor", "phase": "backward", "out": 0, "shape": [2, 3],
    "dtype": "float32", "nan": 1, "inf": 0, "zero": 0, "subnormal": 0, "size": 6, "min": "-inf", "max": 4.0,
    "mean_abs": "nan", "quantiles": [1.0, "inf"], "growth": None, "digest": "ab", "from_a_later_version": 1,
    "error": {"max_ulp": "inf", "median_ulp": 0.5, "max_relative": 1e-3}, "cancellation": 12.0,
}  # fmt: skip


def test_every_kind_of_line(tmp_path):
    path = tmp_path / "probe.jsonl"
    derivative = {"event": "derivative", "comparison": 1, "side": "expected", "leaf": 2, "element": [0, 1],
                  "actual": 1.0, "expected": "nan", "left": 1.0, "right": 2.0, "jump": True,
                  "steps": [{"h": 0.5, "left": 1.0, "right": "nan"},
                            {"h": 0.25, "left": None, "right": 2.0}]}  # fmt: skip
    precision = {"event": "precision", "comparison": 1, "element": [0, 1], "truth": None, "why": "a kernel"}
    end = {"event": "end", "outcome": "FAILED", "original": "PASSED", "same_outcome": False, "steps": 4}
    begin = {"event": "begin", "seed": 7, "mode": "replay", "torch": None, "device": "cuda"}
    write(path, begin, STEP, precision, derivative, end)
    found = read(path)
    (step,), (exact,), (slope,) = found.steps, found.precisions, found.derivatives
    assert (step.op, step.phase, step.shape, step.min, step.max) == (
        "aten.sub.Tensor", "backward", (2, 3), -math.inf, 4.0,
    )  # fmt: skip
    assert math.isnan(step.mean_abs)
    assert step.error == Rounding(max_ulp=math.inf, median_ulp=0.5, max_relative=1e-3)
    assert (exact.truth, exact.why, exact.element) == (None, "a kernel", (0, 1))
    assert slope.steps[1] == Quotient(h=0.25, left=None, right=2.0)
    assert math.isnan(slope.steps[0].right)
    assert (slope.side, slope.jump, slope.control) == ("expected", True, False)
    assert (found.begin.torch, found.begin.device) == ("", "cuda")
    assert (found.end.same_outcome, found.end.original) == (False, "PASSED")


def test_a_file_that_was_cut_off_has_no_end(tmp_path):
    path = tmp_path / "probe.jsonl"
    write(path, STEP)
    with path.open("a") as file:
        file.write('{"event": "end", "outc')
    found = read(path)
    assert len(found.steps) == 1
    assert found.end is None


def test_an_absent_file_is_an_empty_probe(tmp_path):
    assert read(tmp_path / "none") == Probe(steps=[], precisions=[], derivatives=[], gradchecks=[])
