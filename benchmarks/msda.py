"""How long the operator takes on a GPU, beside grid_sample and every peer that is installed.

    python benchmarks/msda.py [--types float32 float16 bfloat16] [--padding zeros] [--rounds 50]

Prints one table: milliseconds forward, and forward + backward, each the median over rounds; and the peak of
memory that forward + backward needs beyond its inputs. Points are uniform on the square pyramid, elsewhere
normal offsets of three pixels around each query's reference point.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import triton

from msda_triton import native_multiscale_deformable_attention, triton_multiscale_deformable_attention

Operator = Callable[..., torch.Tensor]


class Shape(NamedTuple):
    """A workload; heads are 8 and channels 32 everywhere."""

    name: str
    batch: int
    queries: int
    points: int
    levels: tuple[tuple[int, int], ...]
    uniform: bool


PYRAMID = ((64, 64), (32, 32), (16, 16), (8, 8))
SHAPES = (
    Shape("reported B4 64..8 N1000 P3", 4, 1000, 3, PYRAMID, True),
    Shape("B4 64..8 N10000 P4", 4, 10000, 4, PYRAMID, True),
    Shape("encoder B2 N17821 P4", 2, 17821, 4, ((100, 134), (50, 67), (25, 34), (13, 17)), False),
    Shape("decoder B4 N300 P4", 4, 300, 4, ((100, 167), (50, 84), (25, 42), (13, 21)), False),
)


def inputs(shape: Shape, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """img, img_shapes, points, weights and a gradient of the output."""
    generator = torch.Generator("cuda").manual_seed(0)
    pixels = sum(height * width for height, width in shape.levels)
    img_shapes = torch.tensor(shape.levels, device="cuda")
    img = torch.randn(shape.batch, pixels, 8, 32, device="cuda", generator=generator)
    place = (shape.batch, shape.queries, 8, len(shape.levels), shape.points)
    if shape.uniform:
        points = torch.rand(*place, 2, device="cuda", generator=generator)
    else:
        size = img_shapes.flip(-1)[:, None]
        offsets = 3 * torch.randn(*place, 2, device="cuda", generator=generator) / size
        points = references(shape)[None, :, None, None, None] + offsets
    weights = torch.randn(*place[:3], place[3] * place[4], device="cuda", generator=generator).softmax(-1)
    grad_out = torch.randn(shape.batch, shape.queries, 8, 32, device="cuda", generator=generator)
    floats = (img, points, weights.view(place), grad_out)
    img, points, weights, grad_out = (tensor.to(dtype) for tensor in floats)
    return img, img_shapes, points, weights, grad_out


def references(shape: Shape) -> torch.Tensor:
    """An encoder's queries lie on every pixel in turn, a decoder's anywhere; [N, 2]."""
    centres = [
        torch.stack(torch.meshgrid(torch.arange(width), torch.arange(height), indexing="xy"), -1).view(-1, 2)
        / torch.tensor([width, height])
        + 0.5 / torch.tensor([width, height])
        for height, width in shape.levels
    ]
    every = torch.cat(centres)
    if len(every) != shape.queries:
        every = torch.rand(shape.queries, 2, generator=torch.Generator().manual_seed(0))
    return every.cuda()


def median_ms(call: Callable[[], object], rounds: int) -> float:
    """Median over rounds by the GPU's own clock, after warming up; the L2 cache is flushed before each."""
    flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    for _ in range(5):
        call()
    times = []
    for _ in range(rounds):
        flush.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def measure(operator: Operator, shape: Shape, dtype: torch.dtype, padding: str, rounds: int) -> str:
    """The cells of one row."""
    img, img_shapes, points, weights, grad_out = inputs(shape, dtype)
    leaves = [tensor.requires_grad_() for tensor in (img, points, weights)]

    def forward() -> torch.Tensor:
        return operator(img, img_shapes, points, weights, padding, False)

    def both() -> object:
        return torch.autograd.grad(forward(), leaves, grad_out)

    with torch.no_grad():
        first = median_ms(forward, rounds)
    second = median_ms(both, rounds)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    both()
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20
    return f"{first:8.3f} | {second:8.3f} | {peak:7.0f}"


def operators() -> Iterator[tuple[str, Operator]]:
    """Ours, torch's, and the peers that can be imported; a peer takes zeros padding and unaligned corners."""
    yield "msda_triton", triton_multiscale_deformable_attention
    yield "grid_sample", native_multiscale_deformable_attention
    try:
        deformops = importlib.import_module("deformops")
    except ImportError:
        return
    yield "deformops", peer(deformops.multi_scale_deformable_attention)


def peer(function: Operator) -> Operator:
    """A function with Deformable DETR's arguments behind ours."""

    def call(
        img: torch.Tensor, img_shapes: torch.Tensor, points: torch.Tensor, weights: torch.Tensor, *_: object
    ) -> torch.Tensor:
        area = img_shapes.prod(1)
        starts = torch.cat((area.new_zeros(1), area.cumsum(0)[:-1]))
        return function(img, img_shapes, starts, points, weights)

    return call


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--types", nargs="+", default=["float32", "float16", "bfloat16"])
    parser.add_argument("--padding", choices=["border", "zeros"], default="zeros")
    parser.add_argument("--rounds", type=int, default=50)
    arguments = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__},", end=" ")
    print(f"{arguments.padding} padding, median of {arguments.rounds}\n")
    print("| shape | type | implementation | forward, ms | both, ms | peak, MiB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for shape in SHAPES:
        for kind in arguments.types:
            for name, operator in operators():
                row = measure(operator, shape, getattr(torch, kind), arguments.padding, arguments.rounds)
                print(f"| {shape.name} | {kind} | {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
