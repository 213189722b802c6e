"""How long the operator takes on a GPU, beside grid_sample and every peer that is installed.

    python benchmarks/msda.py [--types float32 float16 bfloat16] [--padding zeros] [--mmcv FOLDER]
    python benchmarks/msda.py --queries 10 100 1000 10000 100000 --only msda_triton
    DEFORMOPS_COMPILE=1 python benchmarks/msda.py     # has deformops compile its CUDA kernels, too

Prints one table: milliseconds forward, and forward + backward, each the median over rounds in which the
implementations take turns; forward + backward replayed as a CUDA graph, which is the GPU's own time, without
Python and launches; and the peak of memory that forward + backward needs beyond its inputs. Points are
uniform on the square pyramid, elsewhere normal offsets of three pixels around each query's reference point.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
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


MMCV_FILES = (
    "common_cuda_helper.hpp",
    "pytorch_cuda_helper.hpp",
    "ms_deform_attn_cuda_kernel.cuh",
    "ms_deform_attn_cuda.cu",
)
MMCV_BINDING = """#include <torch/extension.h>
using T = at::Tensor;
T ms_deform_attn_cuda_forward(const T &, const T &, const T &, const T &, const T &, const int);
void ms_deform_attn_cuda_backward(const T &, const T &, const T &, const T &, const T &, const T &,
                                  T &, T &, T &, const int);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &ms_deform_attn_cuda_forward);
  m.def("backward", &ms_deform_attn_cuda_backward);
}
"""


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


class Rounds(NamedTuple):
    """How often each call is timed, and how often in a row before it is another's turn."""

    number: int
    turn: int


def medians_ms(calls: dict[str, Callable[[], object]], rounds: Rounds) -> dict[str, float]:
    """Median over rounds of each implementation's call by the GPU's own clock, after warming up.

    The calls take turns, so that what else the machine does meets them all; L2 is flushed before each.
    """
    number = rounds.number
    flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    if min(map(warmed_ms, calls.values()), default=1) < 1:  # what Python and launches bound scatters more
        number *= 5
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.disable()
    try:
        for begin in range(0, number, rounds.turn):
            for name, call in calls.items():
                for _ in range(min(rounds.turn, number - begin)):
                    flush.zero_()
                    times[name].append(timed_ms(call))
    finally:
        gc.enable()
    return {name: statistics.median(taken) for name, taken in times.items()}


def timed_ms(call: Callable[[], object]) -> float:
    """One call by the GPU's own clock."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end))


def warmed_ms(call: Callable[[], object]) -> float:
    """Roughly how long a call takes, after having been called 20 times."""
    begin = time.perf_counter()
    for _ in range(20):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1000 / 20


def captured(call: Callable[[], object]) -> Callable[[], object] | None:
    """The same as a CUDA graph; None where `call` waits for the GPU and so cannot be captured."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            call()
    except Exception:
        torch.cuda.synchronize()
        return None
    replay: Callable[[], object] = graph.replay
    return replay


class Calls(NamedTuple):
    """What is timed of one implementation."""

    forward: Callable[[], object]
    both: Callable[[], object]
    replay: Callable[[], object] | None


def calls_of(operator: Operator, tensors: tuple[torch.Tensor, ...], padding: str, graph: bool) -> Calls:
    """Called once already, so that what an implementation refuses shows here."""
    img, img_shapes, points, weights, grad_out = tensors

    def call() -> torch.Tensor:
        return operator(img, img_shapes, points, weights, padding, False)

    def both() -> object:
        return torch.autograd.grad(call(), (img, points, weights), grad_out)

    both()
    return Calls(torch.no_grad()(call), both, captured(both) if graph else None)


def peak_mib(call: Callable[[], object]) -> float:
    """Memory at the peak beyond what is held before."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    return float((torch.cuda.max_memory_allocated() - before) / 2**20)


def measure(
    chosen: list[tuple[str, Operator]], shape: Shape, dtype: torch.dtype, padding: str, rounds: Rounds
) -> dict[str, str]:
    """The cells of each implementation's row."""
    tensors = inputs(shape, dtype)
    for index in (0, 2, 3):
        tensors[index].requires_grad_()
    refused: dict[str, str] = {}
    calls: dict[str, Calls] = {}
    for name, operator in chosen:
        try:
            graph = name.startswith(("msda_triton", "mmcv"))  # the others wait for the GPU
            calls[name] = calls_of(operator, tensors, padding, graph)
        except Exception as error:  # a peer that does not take a type is part of the table
            refused[name] = f"{type(error).__name__} | | |"
    forward = medians_ms({name: one.forward for name, one in calls.items()}, rounds)
    both = medians_ms({name: one.both for name, one in calls.items()}, rounds)
    replayed = medians_ms({name: one.replay for name, one in calls.items() if one.replay}, rounds)

    def row(name: str) -> str:
        last = f"{replayed[name]:.3f}" if name in replayed else "-"
        return f"{forward[name]:.3f} | {both[name]:.3f} | {last} | {peak_mib(calls[name].both):.0f}"

    return {name: refused.get(name) or row(name) for name, _ in chosen}


def operators(mmcv: str | None) -> list[tuple[str, Operator]]:
    """Ours, torch's, and the peers that are there; a peer takes zeros padding and unaligned corners."""
    ours = triton_multiscale_deformable_attention
    deterministic = functools.partial(ours, deterministic=True)
    found = [("msda_triton", ours), ("msda_triton, deterministic", deterministic)]
    found.append(("grid_sample", native_multiscale_deformable_attention))
    if importlib.util.find_spec("deformops"):
        registry = importlib.import_module("deformops.registry")
        found.append(("deformops", peer(registry.msda)))
        found.append(
            ("deformops, CUDA", peer(functools.partial(registry.msda, backend=registry.Backend.CUDA)))
        )
    if mmcv is not None:
        found.append(("mmcv, CUDA", peer(mmcv_function(Path(mmcv)))))
    return found


def peer(function: Operator) -> Operator:
    """A function with Deformable DETR's arguments behind ours."""
    starts: dict[int, torch.Tensor] = {}

    def call(
        img: torch.Tensor, img_shapes: torch.Tensor, points: torch.Tensor, weights: torch.Tensor, *_: object
    ) -> torch.Tensor:
        if id(img_shapes) not in starts:
            area = img_shapes.prod(1)
            starts.clear()
            starts[id(img_shapes)] = torch.cat((area.new_zeros(1), area.cumsum(0)[:-1]))
        out = function(img, img_shapes, starts[id(img_shapes)], points, weights)
        return out.view(*points.shape[:3], img.shape[3])

    return call


def mmcv_function(sources: Path) -> Operator:
    """Deformable DETR's kernels as mmcv has them, compiled from its sources (`mmcv/ops/csrc`)."""
    from torch.utils.cpp_extension import load

    folder = Path(tempfile.mkdtemp())
    for name in MMCV_FILES:
        (path,) = sources.rglob(name)
        text = path.read_text().replace("THC/THCAtomics.cuh", "ATen/cuda/Atomic.cuh")
        (folder / name).write_text(text.replace("AT_ASSERTM", "TORCH_CHECK"))
    (folder / "bind.cpp").write_text(MMCV_BINDING)
    files = [str(folder / "bind.cpp"), str(folder / "ms_deform_attn_cuda.cu")]
    module = load("mmcv_msda", files, extra_include_paths=[str(folder)], extra_cuda_cflags=["-O3"])

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            return module.forward(*inputs, 64 if len(inputs[0]) % 64 == 0 else len(inputs[0]))

        @staticmethod
        def backward(ctx, grad_out):
            inputs = ctx.saved_tensors
            grads = [torch.zeros_like(inputs[index]) for index in (0, 3, 4)]
            module.backward(*inputs, grad_out.contiguous(), *grads, len(inputs[0]))
            return grads[0], None, None, grads[1], grads[2]

    return Attention.apply


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--types", nargs="+", default=["float32", "float16", "bfloat16"])
    parser.add_argument("--padding", choices=["border", "zeros"], default="zeros")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--turn", type=int, default=10, help="calls of one implementation in a row")
    parser.add_argument("--queries", type=int, nargs="+", help="the square pyramid with these instead of all")
    parser.add_argument("--only", nargs="+", help="implementations to measure")
    parser.add_argument("--mmcv", help="folder with mmcv's sources, to compile its kernels from")
    arguments = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__},", end=" ")
    print(f"{arguments.padding} padding, median of {arguments.rounds}\n")
    print("| shape | type | implementation | forward, ms | both, ms | replayed, ms | peak, MiB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    shapes, rounds = SHAPES, Rounds(arguments.rounds, arguments.turn)
    if arguments.queries:
        shapes = tuple(Shape(f"B4 64..8 N{n} P4", 4, n, 4, PYRAMID, True) for n in arguments.queries)
    chosen = [pair for pair in operators(arguments.mmcv) if not arguments.only or pair[0] in arguments.only]
    for shape in shapes:
        for kind in arguments.types:
            rows = measure(chosen, shape, getattr(torch, kind), arguments.padding, rounds)
            for name, row in rows.items():
                print(f"| {shape.name} | {kind} | {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
