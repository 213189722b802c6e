"""Wrong kernels: the suite's test away from the jumps, or the one at them, must catch each mutation."""

import faulthandler
import importlib
import multiprocessing
import shutil
import sys
import warnings
from pathlib import Path

import pytest
import torch

import msda_triton

PACKAGE = Path(msda_triton.__file__).parent
FORWARD, BACKWARD, COORDINATES = "kernels/forward.py", "kernels/backward.py", "kernels/coordinates.py"

AWAY = [
    (
        "swapped corner",
        FORWARD,
        "(upper * right)[:, None] * top_right",
        "(upper * right)[:, None] * low_left",
    ),
    ("lost corner", FORWARD, "total += (lower * right)[:, None] * low_right.to(SUM)", "pass"),
    ("weight of the wrong sign", FORWARD, "upper = weight * (1 - down)", "upper = -weight * (1 - down)"),
    ("x and y swapped", FORWARD, "pixel = start + y * width + x", "pixel = start + x * width + y"),
    ("height for width", FORWARD, "neighbours(s_x, width", "neighbours(s_x, height"),
    ("lost level", FORWARD, "start += height * width", "start += height"),
    ("head of another", FORWARD, "+ head * C\n", "\n"),
    ("batch of another", FORWARD, "img_ptr += batch * I * (H * C)", "img_ptr += I * (H * C)"),
    ("lost points", FORWARD, "range(P)", "range(P - 1)"),
    ("lost scale, x", BACKWARD, "weight * scale_x *", "weight *"),
    ("lost scale, y", BACKWARD, "weight * scale_y *", "weight *"),
    ("scale of the other axis", BACKWARD, "weight * scale_x *", "weight * scale_y *"),
    ("scale off by one", BACKWARD, "scale_x = width.to(SUM)", "scale_x = (width - 1).to(SUM)"),
    ("scale not reduced", BACKWARD, "scale_y = (height - 1).to(SUM)", "scale_y = height.to(SUM)"),
    ("difference of the wrong sign", BACKWARD, "up * (d_01 - d_00)", "up * (d_00 - d_01)"),
    ("swapped shares", BACKWARD, "left * (d_10 - d_00)", "right * (d_10 - d_00)"),
    ("lost attention weight", BACKWARD, "weight * scale_x *", "scale_x *"),
    ("swapped corner of img", BACKWARD, "(weight * up * right)[:, None]", "(weight * down * left)[:, None]"),
    ("lost weight of img", BACKWARD, "(weight * down * right)[:, None]", "(down * right)[:, None]"),
    ("neighbour off by one", BACKWARD, "there = near + H * C", "there = near + C"),
    ("row off by one", BACKWARD, "sums_row + far, rest_row", "sums_row + near, rest_row"),
    ("dropped mask", BACKWARD, "has_bottom = has_bottom & held", "has_bottom = held"),
    ("half a pixel off", COORDINATES, "tl.fma(s, extent, -0.5)", "tl.fma(s, extent, 0.5)"),
    ("size not reduced", COORDINATES, "x = s * (extent - 1)", "x = s * extent"),
    ("border one pixel late", COORDINATES, "last = extent - 1", "last = extent"),
    ("gradient beyond the border", COORDINATES, "moves = (x > 0) & (x < last)", "moves = x == x"),
    ("gradient before the border", COORDINATES, "moves = (x > 0) & (x < last)", "moves = x > 0"),
    ("outermost half pixel lost", COORDINATES, "inside = (x >= -1)", "inside = (x >= 0)"),
    ("last half pixel lost", COORDINATES, "& (x < extent)", "& (x < extent - 1)"),
    ("dropped mask of the upper", COORDINATES, "inside & (index + 1 < size)", "inside"),
    ("last pixel lost", COORDINATES, "index + 1 < size", "index + 2 < size"),
    ("nearest for floor", COORDINATES, "floor = tl.floor(x)", "floor = tl.floor(x + 0.5)"),
]
AT = [
    ("gradient on the border", COORDINATES, "moves = (x > 0)", "moves = (x >= 0)"),
    ("gradient on the far border", COORDINATES, "(x < last)", "(x <= last)"),
    ("side of the previous pixel", COORDINATES, "floor = tl.floor(x)", "floor = -tl.floor(-x) - 1"),
    ("corner without its outside", COORDINATES, "inside = (x >= -1)", "inside = (x > -1)"),
]
# Python 3.12 warns of forks beside threads; this one does not touch what the threads hold.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
OPTIONS = [("border", False), ("zeros", False), ("border", True), ("zeros", True)]


@pytest.fixture
def load(tmp_path, monkeypatch):
    """A copy of the package, changed in one place."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def copy(file, old, new):
        shutil.copytree(PACKAGE, tmp_path / "mutant", ignore=shutil.ignore_patterns("__pycache__"))
        path = tmp_path / "mutant" / file
        source = path.read_text()
        assert old in source, "the mutation has lost its place"
        path.write_text(source.replace(old, new))
        return importlib.import_module("mutant").triton_multiscale_deformable_attention

    yield copy
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "mutant":
            del sys.modules[name]


def passes(check):
    """Whether `check` passes with both padding modes and alignments; a forked process that dies does not.

    Without its mask a kernel writes where it has no business, and must not do so in the process of the tests.
    """
    context = multiprocessing.get_context("fork")
    verdict = context.Value("b", False)
    child = context.Process(target=_run, args=(check, verdict))
    child.start()
    child.join()
    assert child.exitcode <= 0, "the kernel does not run at all"
    return child.exitcode == 0 and bool(verdict.value)


def _run(check, verdict):
    faulthandler.disable()  # a crash is one of the expected ends
    warnings.simplefilter("ignore")  # numpy is loud about what stray reads find
    torch.set_num_threads(1)  # the pool of threads stayed behind in the parent
    try:
        for options in OPTIONS:
            torch.manual_seed(0)
            check(*options)
    except AssertionError:
        return
    verdict.value = True


@pytest.mark.slow
@pytest.mark.parametrize(("file", "old", "new"), [m[1:] for m in AWAY], ids=[m[0] for m in AWAY])
def test_mutation_is_caught_away_from_jumps(load, suite, file, old, new):
    operator = load(file, old, new)
    assert not passes(lambda *options: suite.check_away_from_jumps(operator, torch.float32, *options))


@pytest.mark.slow
@pytest.mark.parametrize(("file", "old", "new"), [m[1:] for m in AT], ids=[m[0] for m in AT])
def test_mutation_is_caught_at_jumps(load, suite, file, old, new):
    """Only the convention differs: away from the jumps these kernels are right, at them they are not."""
    operator = load(file, old, new)
    assert not passes(lambda *options: suite.check_at_jumps(operator, *options))


def test_copy_without_mutation_passes(load, suite):
    operator = load(FORWARD, "total", "total")
    assert passes(lambda *options: suite.check_away_from_jumps(operator, torch.float32, *options))
    assert passes(lambda *options: suite.check_at_jumps(operator, *options))
