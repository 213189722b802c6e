"""A small package whose test fails at a known rate: slopes of an interpolated row, without torch.

A place just before a pixel may be taken for that pixel. The interpolated value hardly changes, the slope
does: the same fault as a kernel's that rounds coordinates, in a trial of a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

TEST_FILE = "tests/test_rows.py"
_HELPERS = ("clamp", "clip", "bound", "limit")
_PARAMETERS = (
    ("dtype", '["float32", "float64"]'),
    ("padding_mode", '["border", "zeros"]'),
    ("align_corners", "[True, False]"),
)


@dataclass(frozen=True, kw_only=True)
class State:
    """One revision of the package.

    The test fails with probability `1 - (1 - snap) / reach`, or never where that is negative.

    Args:
        snap: pixels before a pixel that count as it.
        reach: largest distance behind a pixel that the test draws, in pixels.
        rounds_up: whether `snap` is in use.
        replays: whether the test draws from the seeded generator, or else from the system's.
        parameters: how many parameters the test has; None where it does not exist.
        file: whether the test's file exists.
        source: folder that the package lies in, ending in `/`, or "".
        imports: whether the package can be imported.
        asks_version: whether it asks for its own version at import.
        helper, notes, remarks, checks, release, features: what changes without any effect.
    """

    snap: float = 0.0
    reach: float = 1.0
    rounds_up: bool = True
    replays: bool = True
    parameters: int | None = 0
    file: bool = True
    source: str = ""
    imports: bool = True
    asks_version: bool = False
    helper: str = _HELPERS[0]
    notes: int = 0
    remarks: int = 0
    checks: int = 0
    release: int = 1
    features: tuple[str, ...] = ()


def innocent(state: State, number: int) -> tuple[str, State]:
    """The `number`th change that has no effect, and its message."""
    changes: list[tuple[str, dict[str, object]]] = [
        ("Explain rows in the README", {"notes": state.notes + 1}),
        ("Rename a helper", {"helper": _HELPERS[(number // 5 + 1) % len(_HELPERS)]}),
        ("Comment on the kernel", {"remarks": state.remarks + 1}),
        ("Check one more length", {"checks": state.checks + 1}),
        ("Release", {"release": state.release + 1}),
    ]
    message, change = changes[number % len(changes)]
    return message, replace(state, **change)


def files_of(state: State) -> dict[str, str]:
    """The files of a revision, by name."""
    package = f"{state.source}rows"
    files = {
        "README.md": "# rows\n" + "".join(f"\nNote {number}.\n" for number in range(state.notes)),
        "pyproject.toml": f'[project]\nname = "rows"\nversion = "0.{state.release}"\n',
        f"{package}/__init__.py": _init(state),
        f"{package}/helpers.py": _HELPERS_SOURCE.format(helper=state.helper, rounds_up=state.rounds_up),
        f"{package}/jit.py": "def jit(function):\n    return function\n",
        f"{package}/kernel.py": _kernel(state),
        f"{package}/reference.py": _REFERENCE,
        "tests/test_lengths.py": _LENGTHS.format(most=state.checks + 2),
    }
    files |= {f"{package}/{name}.py": f'"""The {name} of a row."""\n' for name in state.features}
    return files | ({TEST_FILE: _test(state)} if state.file else {})


def test_name(parameters: int) -> str:
    """pytest's name of the target test with that many parameters."""
    values = ("float32", "border", "False")[:parameters]
    return f"test_backward[{'-'.join(values)}]" if values else "test_backward"


def _init(state: State) -> str:
    lines = ["from rows.kernel import slope" if state.imports else "from rows.kernels import slope"]
    if state.asks_version:
        lines = ["from importlib.metadata import version", "", *lines, "", '__version__ = version("rows")']
    return "\n".join([*lines, ""])


def _kernel(state: State) -> str:
    remarks = "".join(f"# Remark {number}.\n" for number in range(state.remarks))
    return _KERNEL.format(helper=state.helper, snap=state.snap, remarks=remarks)


def _test(state: State) -> str:
    source = "random" if state.replays else "random.SystemRandom()"
    head = _TEST.format(reach=state.reach, source=source)
    if state.parameters is None:
        return head
    named = _PARAMETERS[: state.parameters]
    marks = "".join(f'@pytest.mark.parametrize("{name}", {values})\n' for name, values in reversed(named))
    return f"{head}\n\n{marks}def test_backward({', '.join(name for name, _ in named)}):\n{_BODY}"


_HELPERS_SOURCE = """\
ROUNDS_UP = {rounds_up}


def {helper}(index, last):
    return min(max(index, 0), last)
"""
_KERNEL = """\
from rows.helpers import ROUNDS_UP, {helper}
from rows.jit import jit

SNAP = {snap!r}  # pixels; what lies this close before a pixel counts as that pixel


{remarks}@jit
def slope(row, place):
    left = {helper}(int(place), len(row) - 2)
    if ROUNDS_UP and place - left > 1 - SNAP:
        left = {helper}(left + 1, len(row) - 2)
    return row[left + 1] - row[left]
"""
_REFERENCE = """\
import math


def slope(row, place):
    left = math.floor(place)
    return row[left + 1] - row[left]
"""
_TEST = """\
import random

import pytest
from rows import reference, slope

PIXELS = 8
REACH = {reach!r}  # of the places behind a pixel that are drawn
SOURCE = {source}


def draw():
    row = [SOURCE.gauss(0, 1) for _ in range(PIXELS + 2)]
    return row, SOURCE.randrange(PIXELS) + REACH * SOURCE.random()


def test_first_pixel():
    row, _ = draw()
    assert slope(row, 0) == row[1] - row[0]
"""
_BODY = """\
    row, place = draw()
    assert slope(row, place) == pytest.approx(reference.slope(row, place), abs=1e-12)
"""
_LENGTHS = """\
import pytest
from rows import slope


@pytest.mark.parametrize("length", range(2, {most} + 1))
def test_length(length):
    assert slope(list(range(length)), 0.25) == 1
"""
