"""Planted causes, told apart by the numbers of a probe; and that the probe changes nothing."""

import itertools

import numpy
import pytest
from probing import look

from repro.trial.probe.derivative import ENDS_BEFORE

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow


@pytest.fixture
def probe(tmp_path):
    names = (tmp_path / f"probe{number}.jsonl" for number in itertools.count())
    return lambda function, **options: look(torch, next(names), function, **options)


def ops(probe):
    return [step.op for step in probe.steps]


class Wrong(torch.autograd.Function):
    """A square whose gradient has a wrong factor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2.2 * ctx.saved_tensors[0] * grad


class Kernel(torch.autograd.Function):
    """|x - 1/4| and its gradient, computed where torch does not see it, in float32."""

    factor = 1.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        numpy.abs(x.detach().numpy() - numpy.float32(0.25), out=out.numpy())
        return out

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty_like(grad)
        side = numpy.where(ctx.saved_tensors[0].detach().numpy() >= 0.25, 1, -1)
        numpy.multiply(grad.numpy(), numpy.float32(Kernel.factor) * side.astype("float32"), out=out.numpy())
        return out


def kink(x):
    return torch.where(x > 0.25, x - 0.25, 0.25 - x)


def leaves():
    x = torch.rand(6)
    x[3] = 0.25
    return [x.clone().requires_grad_() for _ in range(2)], torch.rand(6)


# Precision -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("culprit", ["actual", "expected"])
def test_an_unstable_subtraction(probe, culprit):
    def test(close):
        x = torch.rand(64) + 1000.0
        unstable, stable = (x * x).mean() - x.mean() ** 2, ((x - x.mean()) ** 2).mean()
        pair = (unstable, stable) if culprit == "actual" else (stable, unstable)
        close(*pair, atol=1e-3, rtol=1e-3)

    found = probe(test)
    (one,) = found.precisions
    assert one.wrong == culprit
    assert one.truth == pytest.approx(0.07602834, rel=1e-6)
    assert max(one.actual_ulp, one.expected_ulp) > 1e6 > 1e3 > min(one.actual_ulp, one.expected_ulp)
    worst = max(found.steps, key=lambda step: step.error.max_ulp)
    assert (worst.op, worst.size) == ("aten.sub.Tensor", 1)
    assert worst.cancellation > 1e6
    assert found.derivatives[0].why.startswith("the compared tensor is no gradient")
    assert found.end.same_outcome
    assert found.end.trouble == ""


def test_both_sides_right_and_a_tolerance_too_tight(probe):
    def test(close):
        x = torch.rand(1000) * 1e4
        ours = (x + 0.1) - x
        close(ours, 0.2 - ours, atol=6e-4, rtol=0)

    found = [one for one in probe(test).precisions if not one.control]
    assert {(round(one.truth, 6), one.wrong) for one in found} == {(0.1, "neither")}


def test_two_formulas_have_no_truth(probe):
    def test(close):
        x = torch.rand(3)
        close(x * 2, x * 3)

    one = probe(test).precisions[0]
    assert (one.truth, one.wrong) == (None, None)
    assert one.expected_float64 == pytest.approx(1.5 * one.actual_float64)
    assert "they compute different things" in one.why


def test_what_rounding_of_the_inputs_makes_unavoidable(probe):
    """Terms that cancel lose as many digits in any formula; the variance loses them in this one alone."""

    def terms(close):
        x = torch.randn(64, 256)
        close(sum(x.unbind(1)), x.double().sum(1).float(), rtol=0, atol=5e-6)

    def variance(close):
        x = torch.rand(64) + 100.0
        close((x * x).mean() - x.mean() ** 2, ((x - x.mean()) ** 2).mean(), rtol=1e-4, atol=0)

    cancelled, (unstable,) = probe(terms, controls=64).precisions, probe(variance).precisions
    assert max(one.inputs_ulp for one in cancelled) > 4
    assert max(one.actual_ulp for one in cancelled) > 64
    assert all(one.actual_ulp < 32 * max(1, one.inputs_ulp) for one in cancelled)
    assert unstable.inputs_ulp < 1
    assert unstable.actual_ulp > 1e3


def test_inputs_are_moved_only_where_asked(probe):
    def test(close):
        x = torch.rand(3)
        close(x + 1e4 - 1e4, x)

    assert {one.inputs_ulp for one in probe(test, perturbed=0).precisions} == {None}
    assert all(0 < one.inputs_ulp <= 1 for one in probe(test, perturbed=1).precisions)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.randn_like(torch.ones(8)),
        lambda: torch.empty(8).uniform_(1, 2),
        lambda: torch.zeros(2, 8).normal_()[1],
        lambda: torch.nn.init.xavier_uniform_(torch.empty(2, 8))[0],
    ],
)
def test_what_is_drawn_into_a_tensor_is_an_input(probe, draw):
    def test(close):
        x = draw()
        close(x + 1e4 - 1e4, x, rtol=0, atol=0)

    found = [one for one in probe(test).precisions if not one.control]
    assert found
    assert all(one.truth is not None and one.expected_ulp == 0 for one in found)
    assert all(0 < one.inputs_ulp <= 1 for one in found)


def test_what_is_drawn_by_other_numbers_is_not_repeated(probe):
    def test(close):
        close(torch.nn.functional.dropout(torch.ones(8)), torch.full((8,), 3.0))

    (one, *_) = probe(test).precisions
    assert (one.actual_float64, one.truth) == (None, 3.0)


def test_one_less_a_number_cancels(probe):
    def test(close):
        p = torch.full((3,), 1 - 2.0**-20)
        close(1 - p, 2 * (1 - p))

    step = next(step for step in probe(test).steps if "sub" in step.op)
    assert step.cancellation == 2.0**20


@pytest.mark.parametrize("fill", ["copy_", "kernel"])
def test_memory_that_was_just_made(probe, fill):
    """What lies in it may be what a kernel writes: nothing changes, and no operation of torch wrote it."""

    def test(close):
        x = torch.rand(6) + 1
        out = torch.empty_like(x)
        if fill == "copy_":
            out.copy_(x)
        else:
            out.numpy()[:] = out.numpy()
        close(out + 1, out - out)

    for one in probe(test, controls=0).precisions:
        if fill == "copy_":
            assert one.actual_float64 == pytest.approx(one.actual, rel=1e-6)
        else:
            assert one.actual_float64 is None
            assert "no operation of torch" in one.why


def test_a_cast_to_a_narrow_type_rounds_in_float64_too(probe):
    def test(close):
        x = torch.rand(100).half()
        close(x.float() * 3, (x * 3).float(), atol=0, rtol=1e-5)

    found = probe(test)
    assert found.steps[1].error.max_ulp == 0
    assert {one.wrong for one in found.precisions if not one.control} == {"expected"}


# Steps -----------------------------------------------------------------------------------------------------


def test_the_first_nan_is_where_the_domain_is_left(probe):
    def test(close):
        x = torch.linspace(-1, 1, 9).requires_grad_()
        y = torch.sqrt(x * x - 0.5) * 2
        y.sum().backward()
        assert torch.isfinite(x.grad).all()

    found = probe(test)
    first = next(step for step in found.steps if step.nan)
    assert (first.op, first.phase, first.nan) == ("aten.sqrt.default", "forward", 5)
    assert first.error.max_ulp < 1
    assert any(step.nan for step in found.steps if step.phase == "backward")


def test_an_exploding_chain(probe):
    def test(close):
        x = torch.rand(4, 4).requires_grad_()
        w, y = torch.rand(4, 4) * 30, x
        for _ in range(25):
            y = y @ w
        y.sum().backward()
        assert torch.isfinite(x.grad).all()

    found = probe(test)
    products = [step for step in found.steps if step.op == "aten.mm.default"]
    grown = [step.growth for step in products if not step.inf]
    assert len(grown) > 20
    assert sorted(grown)[len(grown) // 2] > 50
    broken = next(step for step in found.steps if step.inf)
    assert broken.op == "aten.mm.default"
    assert broken.error.max_relative == float("inf")


def test_counts_and_quantiles(probe):
    def test(close):
        torch.tensor([0.0, 1e-40, -2.0, float("inf"), float("nan"), 5.0]).clone()

    step = probe(test).steps[-1]
    assert (step.nan, step.inf, step.zero, step.subnormal, step.size) == (1, 1, 1, 1, 6)
    assert (step.min, step.max, step.largest) == (-2.0, 5.0, 5.0)
    assert step.mean_abs == pytest.approx(7 / 4)
    assert step.quantiles[2] == pytest.approx(5e-41)
    assert len(step.digest) == 40


def test_what_torch_does_not_see_is_a_step_of_its_own(probe):
    def test(close):
        (a, b), w = leaves()
        Kernel.apply(a).backward(w)
        kink(b).backward(w)
        close(a.grad, b.grad)

    found = probe(test, derivatives=False)
    unseen = [step for step in found.steps if step.op == "written outside of torch"]
    assert [step.phase for step in unseen] == ["forward", "backward"]
    assert all(step.error is None and "no operation of torch" in step.note for step in unseen)
    assert found.precisions[0].truth == found.precisions[0].expected
    assert found.precisions[0].actual_float64 is None


def test_comparing_is_no_step(probe):
    found = probe(lambda close: close(torch.ones(3), torch.ones(3)))
    assert set(ops(found)) == {"aten.ones.default"}


# Derivatives -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ours", [kink, Kernel.apply], ids=["seen", "unseen"])
def test_a_jump_of_the_derivative(probe, ours):
    def test(close):
        (a, b), w = leaves()
        (ours(a) * w).sum().backward()
        (expected,) = torch.autograd.grad((b - 0.25).abs().neg().neg().clamp(min=0), [b], w)
        close(a.grad, expected)

    found = probe(test, controls=2)
    jumps = [one for one in found.derivatives if not one.control]
    assert [one.side for one in jumps] == ["actual", "expected"]
    for one in jumps:
        assert one.jump
        assert one.element == (3,)
        assert one.right == pytest.approx(-one.left, rel=1e-4)
        assert one.actual_fits in ("left", "right")
    assert [one.leaf for one in jumps] == [0, 1]
    controls = [one for one in found.derivatives if one.control]
    assert len(controls) == 4
    assert {(one.jump, one.actual_fits, one.expected_fits) for one in controls} == {(False, "both", "both")}


@pytest.mark.parametrize("predicate", [False, True], ids=["assert_close", "allclose"])
def test_outputs_that_are_checked_first_hide_no_jump(probe, predicate):
    """With an input of one side moved, the outputs differ; the gradient is measured all the same."""

    def test(close):
        (a, b), w = leaves()
        ours, theirs = kink(a), (b - 0.25).abs()
        if predicate:
            assert close(ours, theirs)
        else:
            close(ours, theirs)
        (ours * w).sum().backward()
        (theirs.neg().neg().clamp(min=0) * w).sum().backward()
        assert close(a.grad, b.grad) in (None, True)

    found = probe(test, controls=0, predicate=predicate)
    jumps = [(one.side, one.element, one.jump) for one in found.derivatives]
    assert jumps == [("actual", (3,), True), ("expected", (3,), True)]


def test_a_test_that_ends_by_itself_where_an_input_moves(probe):
    def test(close):
        (a, b), w = leaves()
        ours, theirs = kink(a), (b - 0.25).abs()
        assert torch.equal(ours, theirs)
        (ours * w).sum().backward()
        (theirs.neg().neg().clamp(min=0) * w).sum().backward()
        close(a.grad, b.grad)

    found = probe(test, controls=0)
    assert {one.why for one in found.derivatives} == {ENDS_BEFORE}


def test_a_wrong_factor(probe):
    def test(close):
        (a, b), w = leaves()
        Wrong.apply(a).backward(w)
        (b**2 * w).sum().backward()
        close(a.grad, b.grad, atol=1e-3, rtol=1e-2)

    found = probe(test, differentiated=2, controls=0)
    measured = [one for one in found.derivatives if not one.control]
    assert len(measured) == 4
    assert {(one.jump, one.actual_fits, one.expected_fits) for one in measured} == {(False, "none", "both")}
    assert found.end.truncated
    assert all(len(one.steps) == 6 for one in measured)


# gradcheck -------------------------------------------------------------------------------------------------


def checked(found):
    return {(one.comparison, one.side): one for one in found.gradchecks}


def test_gradcheck_fails_at_a_jump_alone(probe):
    """Both sides are one-sided derivatives there, and neither is what differences on both sides give."""

    def test(close):
        (a, b), w = leaves()
        (kink(a) * w).sum().backward()
        torch.where(b < 0.25, 0.25 - b, b - 0.25).backward(w)
        close(a.grad, b.grad)

    found = checked(probe(test, gradcheck=8, derivatives=False))
    assert {key: (one.passed, one.elements, one.of) for key, one in found.items()} == {
        (0, "actual"): (False, 6, 6),
        (0, "expected"): (False, 6, 6),
    }
    for one in found.values():
        assert [each.element for each in one.apart] == [(3,)]
        assert one.apart[0].numerical == pytest.approx(0, abs=1e-3)
        assert one.message.startswith("Jacobian mismatch for output 0 with respect to input 0")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_gradcheck_fails_everywhere_for_a_wrong_factor(probe, dtype):
    def test(close):
        x = torch.rand(4).to(dtype) + 1
        a, b = (x.clone().requires_grad_() for _ in range(2))
        Wrong.apply(a).backward(torch.ones(4, dtype=dtype))
        (b**2).sum().backward()
        close(a.grad, b.grad, atol=1e-3, rtol=1e-2)

    found = checked(probe(test, gradcheck=3, derivatives=False))
    wrong, right = found[0, "actual"], found[0, "expected"]
    assert (wrong.passed, wrong.elements, wrong.of, len(wrong.apart)) == (False, 3, 4, 3)
    assert (right.passed, right.apart, right.message) == (True, (), "")


def test_gradcheck_passes_where_nothing_is_wrong(probe):
    def test(close):
        (a, b), w = leaves()
        (torch.sin(a) * w).sum().backward()
        torch.sin(b).backward(w)
        close(a.grad, b.grad)

    found = probe(test, gradcheck=8)
    assert [(one.side, one.passed) for one in found.gradchecks] == [("actual", True), ("expected", True)]
    assert (found.end.outcome, found.derivatives, found.precisions) == ("PASSED", [], [])
    assert probe(test).gradchecks == []


def test_gradcheck_says_why_it_cannot_run(probe):
    def test(close):
        a = torch.tensor([0.0, 1.0], requires_grad=True)
        torch.sqrt(a).sum().backward()
        close(a.grad, torch.ones(2))

    (one,) = probe(test, gradcheck=8, derivatives=False).gradchecks
    assert (one.passed, one.why) == (None, "the function has no finite value beside element [0]")
    (late,) = probe(test, gradcheck=8, derivatives=False, seconds=0.0).gradchecks
    assert (late.passed, late.why) == (None, "there was no time left for it")


def test_a_wrong_factor_of_a_kernel(probe, monkeypatch):
    monkeypatch.setattr(Kernel, "factor", 1.05)

    def test(close):
        (a, b), w = leaves()
        Kernel.apply(a).backward(w)
        kink(b).backward(w)
        close(a.grad, b.grad, atol=1e-3, rtol=1e-2)

    found = probe(test, elements=3, controls=0).derivatives
    measured = [one for one in found if one.element != (3,)]
    assert {(one.side, one.actual_fits, one.expected_fits) for one in measured} == {
        ("actual", "none", "both"),
        ("expected", "none", "both"),
    }
    kernels = [one for one in measured if one.side == "actual"]
    assert all(1e-7 < one.noise < 1e-3 for one in kernels)


def test_one_input_for_both_sides_whose_gradient_was_copied(probe):
    def test(close):
        x = torch.rand(4, requires_grad=True)
        Wrong.apply(x).sum().backward()
        ours, x.grad = x.grad.clone(), None
        (x**2).sum().backward()
        close(ours[1:], x.grad[1:].clone())
        close(ours, x.grad)

    found = probe(test, elements=1, controls=0)
    assert {(one.comparison, one.leaf) for one in found.derivatives} == {(0, 0)}
    assert found.derivatives[0].actual_fits == "none"
    assert found.derivatives[0].element == found.precisions[0].element


def test_a_gradient_that_the_test_writes_into_is_one_still(probe):
    def test(close):
        x = torch.rand(4, requires_grad=True)
        (gradient,) = torch.autograd.grad((x**2).sum(), [x])
        gradient[2] += 1.0
        close(gradient, 2 * x.detach())

    (one,) = probe(test, controls=0).derivatives
    assert (one.element, one.leaf, one.actual_fits, one.expected_fits) == ((2,), 0, "none", "both")


def test_a_gradient_that_two_calls_added_up(probe):
    def test(close):
        x = torch.rand(4, requires_grad=True)
        (x**2).sum().backward()
        (x**3).sum().backward()
        close(x.grad, 2 * x.detach())

    one = probe(test, elements=1, controls=0).derivatives[0]
    assert one.actual_fits == "both"
    assert one.expected_fits == "none"


def test_the_time_for_derivatives_is_bounded(probe):
    def test(close):
        (a, b), w = leaves()
        Wrong.apply(a).backward(w)
        (b**2).backward(w)
        close(a.grad, b.grad)

    found = probe(test, seconds=0.0)
    assert found.end.truncated
    assert {one.why for one in found.derivatives} == {"there was no time left for it"}


# The probe itself ------------------------------------------------------------------------------------------

KEPT = torch.rand(3, requires_grad=True)


def test_inputs_that_outlive_the_trial_are_put_back(probe):
    before = KEPT.detach().clone()

    def test(close):
        KEPT.grad = None
        Wrong.apply(KEPT).sum().backward()
        close(KEPT.grad, 2 * KEPT.detach())

    assert probe(test, elements=1, controls=0).derivatives[0].actual_fits == "none"
    assert torch.equal(KEPT.detach(), before)


def awkward(seen):
    """Operations that a second copy might disturb."""
    x = torch.rand(4, 4)
    count = torch.zeros(4, dtype=torch.long)
    count.add_(1)
    count.copy_(x[0] * 10)
    x[1:3, ::2].mul_(3).add_(1)
    x.index_put_((torch.tensor([0, 3]),), torch.rand(4), accumulate=True)
    out = torch.empty(4)
    torch.sum(x, 0, out=out)
    dropped = torch.nn.functional.dropout(x, 0.5)
    norm = torch.nn.BatchNorm1d(4)
    norm(x)
    turned = torch.view_as_complex(torch.rand(3, 2)) * 1j
    torch._foreach_mul_([x, out], 2.0)
    seen.append([x, count, out, dropped, norm.running_mean, turned, torch.rand(2)])


def test_results_stay_the_same_to_the_last_bit(probe):
    seen = []
    found = probe(lambda close: awkward(seen))
    plain, *probed = seen
    assert len(probed) == 4, "three times with its inputs moved, and once under the probe"
    for again in probed:
        assert all(torch.equal(one, other) for one, other in zip(plain, again, strict=True))
    assert found.end.trouble == ""
    assert all(step.error is None or step.error.max_ulp < 10 for step in found.steps)


def test_a_fault_of_the_probe_is_no_outcome(probe, monkeypatch):
    monkeypatch.setattr("repro.trial.probe.session.describe", lambda *_: 1 / 0)
    found = probe(lambda close: close(torch.rand(3) + 1, torch.rand(3) + 9))
    assert found.end.same_outcome
    assert found.end.trouble == "ZeroDivisionError: division by zero"
    assert found.precisions


def test_steps_are_bounded(probe):
    def test(close):
        x = torch.ones(2)
        for i in range(50):
            x = x / (50 - i) if i < 44 else x.log().neg()

    found = probe(test, steps=10)
    assert found.end.truncated
    assert found.end.steps == 57
    written = [step.n for step in found.steps]
    assert written[:11] == [*range(10), 10]
    broken = [step.n for step in found.steps if step.nan or step.inf]
    assert broken[0] % 10
    assert len(written) < 20
    assert [step.n for step in probe(test, bytes=0).steps] == broken[:1]
