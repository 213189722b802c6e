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
from test_kernels import draw

import msda_triton
from msda_triton import reference_multiscale_deformable_attention

PACKAGE = Path(msda_triton.__file__).parent
FORWARD, BACKWARD, COORDINATES = "kernels/forward.py", "kernels/backward.py", "kernels/coordinates.py"
SMALL = "kernels/coarse.py"

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
    ("lost points", FORWARD, "static_range(UNROLLED)", "static_range(UNROLLED - 1)"),
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
COARSE = [
    (
        "row for column",
        SMALL,
        "y = top + tl.arange(0, SIDE * SIDE) //",
        "y = top + tl.arange(0, SIDE * SIDE) %",
    ),
    ("weight lost in a product", SMALL, " * weight[None, None, :]", ""),
    ("tile of another", SMALL, "left = tile % across * SIDE", "left = 0"),
    ("queries twice", SMALL, "tl.minimum(part * PART + PART, N)", "N"),
    (
        "points outside",
        SMALL,
        "tl.where((has_left | has_right) & (has_top | has_bottom), weight, 0.0)",
        "weight",
    ),
    ("level in both kernels", BACKWARD, "tiles_of(height, width, SIDE) > TILES", "height > 0"),
    (
        "level in neither",
        BACKWARD,
        "tiles_of(height, width, SIDE) > TILES",
        "tiles_of(height, width, SIDE) > 9",
    ),
]
ORDER = [
    ("not rounded", "kernels/sums.py", "whole = (grad + 3 * grid) - 3 * grid", "whole = grad"),
    (
        "rest not rounded",
        "kernels/sums.py",
        "((grad - whole) + (3 * SMALLER) * grid) - (3 * SMALLER) * grid",
        "grad - whole",
    ),
    ("grid too fine", "exact.py", "(1.01 / units)", "(1e-6 / units)"),
]
POINTS = [
    ("one group of points", FORWARD, "range(P // UNROLLED)", "range(1)"),
    ("the same group again", FORWARD, "+ group * UNROLLED", "+ UNROLLED"),
]
TOTAL = [
    ("rest left out", "kernels/total.py", "total += tl.load(rest_ptr", "tl.load(rest_ptr"),
    ("sums left out", "kernels/total.py", "mask=within, other=0.0) != 0)", "mask=within, other=0.0) < 0)"),
    ("rows not written", "kernels/total.py", "if not IN_PLACE:", "if IN_PLACE:"),
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
        registered = tmp_path / "mutant" / "operators.py"  # torch has one operator of a name in a process
        registered.write_text(registered.read_text().replace("msda_triton::", "mutant::"))
        path = tmp_path / "mutant" / file
        source = path.read_text()
        assert old in source, "the mutation has lost its place"
        path.write_text(source.replace(old, new))
        return importlib.import_module("mutant").triton_multiscale_deformable_attention

    yield copy
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "mutant":
            del sys.modules[name]


def passes(check, options=OPTIONS):
    """Whether `check` passes with both padding modes and alignments; a forked process that dies does not.

    Without its mask a kernel writes where it has no business, and must not do so in the process of the tests.
    """
    context = multiprocessing.get_context("fork")
    verdict = context.Value("b", False)
    child = context.Process(target=_run, args=(check, options, verdict))
    child.start()
    child.join()
    assert child.exitcode <= 0, "the kernel does not run at all"
    return child.exitcode == 0 and bool(verdict.value)


def _run(check, chosen, verdict):
    faulthandler.disable()  # a crash is one of the expected ends
    warnings.simplefilter("ignore")  # numpy is loud about what stray reads find
    torch.set_num_threads(1)  # the pool of threads stayed behind in the parent
    try:
        for options in chosen:
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


def image_gradients(operator, orders, scale, dtype=torch.float32, **options):
    """Of levels of two tiles and of one, with 131 queries, in each of the orders."""
    img, points, weights = draw(1, 1, 3, 131, 1, [(7, 9), (9, 2)], dtype, 1)
    grad_out = (torch.randn(1, 131, 1, 3) * scale[:, None, None]).to(dtype)
    leaf = img.requires_grad_()
    for order in orders:
        where, share = points.float()[:, order], weights[:, order]
        out = operator(leaf, [(7, 9), (9, 2)], where, share, "zeros", False, **options)
        yield torch.autograd.grad(out, leaf, grad_out[:, order])[0]


def check_coarse(operator):
    """With the coarse levels' kernel as without."""
    package = importlib.import_module(operator.__module__.partition(".")[0] + ".backward")
    found = []
    for tiles in (2, 0):
        torch.manual_seed(0)
        package.coarse_tiles = lambda *_, tiles=tiles: tiles  # in this process alone
        found += image_gradients(operator, [torch.arange(131)], torch.logspace(-4, 4, 131))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-5 * float(found[1].abs().max()))


def check_many_points(operator):
    """More of them on a level than the forward kernel has side by side."""
    levels = [(7, 9), (9, 2)]
    img, points, weights = draw(1, 2, 3, 5, 9, levels, torch.float64, 1)
    arguments = (img, levels, points, weights, "zeros", False)
    wanted = reference_multiscale_deformable_attention(*arguments)
    torch.testing.assert_close(operator(*arguments), wanted, rtol=0, atol=1e-12)


def check_order(operator):
    """Deterministic sums do not depend on their order."""
    orders = [torch.arange(131), torch.randperm(131)]
    beside_one = torch.full((131,), 1e-9)  # too small for the first grid, which the one query sets
    beside_one[0] = 1
    for scale in (torch.logspace(-4, 4, 131), beside_one):
        one, another = image_gradients(operator, orders, scale, deterministic=True)
        assert torch.equal(one, another)


def check_total(operator):
    """Deterministic sums are the others', of small addends beside large ones and of halves, too."""
    scale = torch.full((131,), 1e-7)
    scale[0] = 1
    for dtype in (torch.float32, torch.bfloat16):
        found = []
        for deterministic in (True, False):
            torch.manual_seed(0)
            few = [torch.arange(5)]
            found += image_gradients(operator, few, scale, dtype=dtype, deterministic=deterministic)
        assert torch.equal(found[0] == 0, found[1] == 0)
        torch.testing.assert_close(*found, rtol=0.05, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize(("file", "old", "new"), [m[1:] for m in TOTAL], ids=[m[0] for m in TOTAL])
def test_mutation_is_caught_in_deterministic_sums(load, file, old, new):
    operator = load(file, old, new)
    assert not passes(lambda: check_total(operator), [()])


@pytest.mark.slow
@pytest.mark.parametrize(("file", "old", "new"), [m[1:] for m in POINTS], ids=[m[0] for m in POINTS])
def test_mutation_is_caught_with_many_points(load, file, old, new):
    operator = load(file, old, new)
    assert not passes(lambda: check_many_points(operator), [()])


@pytest.mark.slow
@pytest.mark.parametrize(("file", "old", "new"), [m[1:] for m in COARSE], ids=[m[0] for m in COARSE])
def test_mutation_is_caught_on_coarse_levels(load, file, old, new):
    operator = load(file, old, new)
    assert not passes(lambda: check_coarse(operator), [()])


@pytest.mark.slow
@pytest.mark.parametrize(("file", "old", "new"), [m[1:] for m in ORDER], ids=[m[0] for m in ORDER])
def test_mutation_is_caught_by_another_order(load, file, old, new):
    operator = load(file, old, new)
    assert not passes(lambda: check_order(operator), [()])


def test_copy_without_mutation_passes(load, suite):
    operator = load(FORWARD, "total", "total")
    assert passes(lambda: check_coarse(operator), [()])
    assert passes(lambda: check_many_points(operator), [()])
    assert passes(lambda: check_order(operator), [()])
    assert passes(lambda: check_total(operator), [()])
    assert passes(lambda *options: suite.check_away_from_jumps(operator, torch.float32, *options))
    assert passes(lambda *options: suite.check_at_jumps(operator, *options))
