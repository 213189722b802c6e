"""What `repro matrix` advises once it is done: the next step, by what stopped the cells."""

import pytest
from fake_engine import cell

from repro.advice import gist
from repro.advice import next_step as advise
from repro.matrix import CellResult, Phase
from repro.stats import Stopping
from repro.trial.records import Outcome

CELL = cell()
TRACEBACK = """\
ImportError while importing test module 'tests/test_adjoint.py'.
Hint: make sure your test modules/packages have valid Python names.
Traceback:
tests/test_adjoint.py:22: in <module>
    import torchsde
E   ModuleNotFoundError: No module named 'trampoline.inner'"""


def result(phase=Phase.BROKEN, *, failed=0, passed=0, note="", **others):
    rate = Stopping(most=9).decide(failed=failed, passed=passed, others=0).rate
    counts = {Outcome(name): count for name, count in others.items()}
    return CellResult(cell=CELL, phase=phase, rate=rate, others=counts, note=note)


def next_step(results, told, engine, unbegun=(), logs="state/logs"):
    return advise(results, told, engine=engine, logs=logs, unbegun=unbegun)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("host", "install the package that holds `trampoline` into this interpreter"),
        ("venv", "name the package that holds `trampoline` under subject.requirements"),
        ("auto", "name the package that holds `trampoline` under subject.requirements"),
    ],
)
def test_a_package_that_the_cell_lacks_is_named(engine, said):
    lacking = result(note="the file cannot be imported", FAILED_OTHERWISE=1)
    assert next_step([lacking], {CELL.id: TRACEBACK}, engine).startswith(said)


def test_what_stopped_the_cell_now_counts_more_than_what_stopped_it_before():
    ambiguous = result(
        note="'test_grad' has several parametrizations, each of which is a test of its own;"
        " the nearest are test_grad[float32]",
        FAILED_OTHERWISE=1,
        TEST_MISSING=1,
    )
    assert "--test 'NAME[CASE]'" in next_step([ambiguous], {CELL.id: TRACEBACK}, "venv")


def test_trials_that_lacked_a_package_are_left_behind_with_fresh():
    mended = result(Phase.DONE, passed=19, FAILED_OTHERWISE=1)
    assert "repro matrix --fresh" in next_step([mended], {CELL.id: TRACEBACK}, "venv", {CELL.id})


def test_another_failure_may_be_the_one_that_is_looked_for():
    other = result(Phase.DONE, passed=19, FAILED_OTHERWISE=1)
    assert "subject.signature" in next_step([other], {CELL.id: "RuntimeError: no backends"}, "venv")


def test_the_logs_that_are_named_lie_in_the_folder_of_this_run():
    broken = result(note="build failed: no such wheel", BUILD_FAILED=1)
    assert f"state/logs for {CELL.id}" in next_step([broken], {}, "venv")


def test_a_test_that_skips_itself():
    skipped = result(note="no trial passes or fails with the target signature", SKIPPED=50)
    assert "`autograd`" in next_step(
        [skipped], {CELL.id: "could not import 'autograd': No module named 'autograd'"}, "venv"
    )
    assert "skips itself" in next_step([skipped], {CELL.id: "needs CUDA"}, "venv")


def test_a_kernel_that_the_interpreter_cannot_run():
    refused = result(note="no trial passes or fails with the target signature", COMPILE_ERROR=5)
    assert next_step([refused], {CELL.id: "AttributeError"}, "venv").startswith("Triton's interpreter")


def test_the_gist_of_a_traceback_is_what_was_raised():
    assert gist(TRACEBACK) == "ModuleNotFoundError: No module named 'trampoline.inner'"
    assert gist("Tensor-likes are not close!\n\nMismatched: 1") == "Tensor-likes are not close! Mismatched: 1"
