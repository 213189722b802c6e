"""A generated history of the operator itself: one small case of its suite, on torch without a GPU."""

from __future__ import annotations

from pathlib import Path

from fast_import import Repository
from histories import CULPRIT, LENGTH, History, Noise

ROOT = Path(__file__).parents[2]
TEST_FILE = "tests/suite/test_native.py"
_COORDINATES = 32
"""Coordinates that one trial draws; each may lie too close to a pixel's centre."""
_ANCHOR = "        grid = 2 * points[:, :, :, level]"
_MOVED = "        grid = 2 * _at_centres(points[:, :, :, level], height, width)"


def operator_change(
    path: Path,
    *,
    old: float,
    new: float,
    noise: Noise = "inputs",
    culprit: int = CULPRIT,
    length: int = LENGTH,
) -> History:
    """An edit of native.py raises the failure rate of its backward test from `old` to `new`."""
    package = {
        name.relative_to(ROOT).as_posix(): name.read_text()
        for name in [*sorted((ROOT / "msda_triton").rglob("*.py")), ROOT / "tests/suite/cases.py"]
    }
    repository, numbers = Repository(path), list[int]()
    for index in range(length):
        files = package | {
            "README.md": "# The operator\n" + "\nA note.\n" * index,
            "msda_triton/native.py": _native(package, new if index >= culprit else old),
            TEST_FILE: _TEST.format(generator=_GENERATORS[noise]) + f"\n\nNOTES = {index // 5}\n",
        }
        message = "Take coordinates near a centre for the centre" if index == culprit else "Add a note"
        numbers.append(repository.commit(message, files, numbers[-1:]))
    ids = repository.finish()
    commits = [ids[number] for number in numbers]
    return History(path=path, commits=commits, culprit=commits[culprit], test_file=TEST_FILE)


def _native(package: dict[str, str], rate: float) -> str:
    """native.py with coordinates moved so that the test fails at `rate`."""
    source = package["msda_triton/native.py"]
    if source.count(_ANCHOR) != 1:
        raise ValueError("native.py has changed: say where its coordinates are")
    near = 1 - (1 - rate) ** (1 / _COORDINATES)
    return source.replace(_ANCHOR, _MOVED) + _CENTRES.format(near=near)


_CENTRES = '''

NEAR = {near!r}


def _at_centres(points: Tensor, height: int, width: int) -> Tensor:
    """Points with coordinates that lie less than NEAR pixels before a pixel's centre moved to it."""
    size = points.new_tensor((width, height))
    pixel = points.detach() * size - 0.5
    centre = pixel.floor() + 1
    moved = (centre + 0.5) / size - points.detach()
    return points + torch.where(centre - pixel < NEAR, moved, 0)
'''
_GENERATORS: dict[Noise, str] = {
    "inputs": "torch.default_generator",
    "run": 'torch.Generator().manual_seed(int.from_bytes(os.urandom(7), "big"))',
}
_TEST = '''\
import os

import torch
from cases import Inputs, run

from msda_triton import native_multiscale_deformable_attention, reference_multiscale_deformable_attention

SIZE = 8


def draw():
    """One level of 8 x 8 pixels, and 16 points between the outermost centres."""
    generator = {generator}
    like = {{"dtype": torch.float64, "generator": generator}}
    points = (0.5 + (SIZE - 1) * torch.rand(1, 16, 1, 1, 1, 2, **like)) / SIZE
    img, grad_out = torch.randn(1, SIZE * SIZE, 1, 2, **like), torch.rand(1, 16, 1, 2, **like) + 0.5
    return Inputs(img, torch.tensor([[SIZE, SIZE]]), points, torch.ones(1, 16, 1, 1, 1).double(), grad_out)


def test_backward():
    inputs = draw()
    found = run(native_multiscale_deformable_attention, inputs, "border", False)
    wanted = run(reference_multiscale_deformable_attention, inputs, "border", False)
    torch.testing.assert_close(found[2], wanted[2], rtol=0, atol=1e-6)
'''
