"""What became of the kernels that a block compiled: machine code as text, and what a profiler sees."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from ..inputs.kept import Replay
from ..protocol import Protocol, Ran
from ..records import Event
from ..trials import Compared, Trials
from .nsight import nsight


def disassemble_cache() -> None:
    """Write machine code as text beside each cubin of Triton's cache, where the cell has a disassembler."""
    tool, cache = find_disassembler(), os.environ.get("TRITON_CACHE_DIR")
    if tool is None or cache is None:
        return
    for cubin in sorted(Path(cache).rglob("*.cubin")):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(
                [tool, "-c", str(cubin)], capture_output=True, text=True, timeout=120, check=False
            )
            if done.returncode == 0:
                cubin.with_suffix(".sass").write_text(done.stdout, encoding="utf-8")


def find_disassembler() -> Optional[str]:
    """The nvdisasm in Triton's wheel, else one on PATH, else None."""
    spec = importlib.util.find_spec("triton")
    for folder in (spec and spec.submodule_search_locations) or ():
        for place in ("backends/nvidia/bin/nvdisasm", "common/../third_party/cuda/bin/nvdisasm"):
            if (Path(folder) / place).is_file():
                return str(Path(folder) / place)
    return shutil.which("nvdisasm")


class Profiling(Trials):
    """Trials of which all but the first, which compiles, run under torch's profiler."""

    _warm = False

    def run(self, protocol: Protocol) -> None:
        """Nsight Compute first, where it is there: the last line of a block is its end."""
        self._records.write(Event.PROFILE, kernels=[], **nsight(self._request.records / "request.json"))
        super().run(protocol)

    def _run(self, protocol: Protocol, replay: Optional[Replay], *inside: Any) -> Tuple[Ran, Compared]:
        if not self._warm:
            self._warm = True
            return super()._run(protocol, replay, *inside)
        torch: Any = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_available():
            reason = "the process has no torch" if torch is None else "there is no GPU to profile"
            self._records.write(Event.PROFILE, kernels=[], reason=reason)
            return super()._run(protocol, replay, *inside)
        activities = [torch.profiler.ProfilerActivity.CUDA]
        with launches(torch) as sizes, torch.profiler.profile(activities=activities) as profiler:
            ran = super()._run(protocol, replay, *inside)
            torch.cuda.synchronize()
        self._records.write(Event.PROFILE, kernels=summary(_trace(profiler), sizes), reason="")
        return ran


@contextlib.contextmanager
def launches(torch: Any) -> Iterator[Dict[str, List[int]]]:
    """By kernel, the bytes of the tensors that each launch of Triton was given.

    A launch goes through `JITFunction.run`, or past it where the code keeps a compiled kernel.
    """
    sizes: Dict[str, List[int]] = {}
    function: Any = getattr(sys.modules.get("triton.runtime.jit"), "JITFunction", None)
    compiled: Any = getattr(sys.modules.get("triton.compiler.compiler"), "CompiledKernel", None)

    def note(name: str, arguments: Iterable[Any]) -> None:
        tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
        held = {one.data_ptr(): one.numel() * one.element_size() for one in tensors}
        sizes.setdefault(name, []).append(sum(held.values()))

    def through_jit(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            note(self.fn.__name__, (*args, *kwargs.values()))
            return original(self, *args, **kwargs)

        return run

    def past_jit(original: Callable[..., Any]) -> Callable[..., Any]:
        def chosen(self: Any, grid: Any) -> Any:
            launch = original(self, grid)

            def run(*args: Any, **kwargs: Any) -> Any:
                note(str(self.metadata.name), args)
                return launch(*args, **kwargs)

            return run

        return chosen

    with contextlib.ExitStack() as stack:
        for owner, name, wrap in ((function, "run", through_jit), (compiled, "__getitem__", past_jit)):
            if hasattr(owner, name):
                stack.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, wrap(getattr(owner, name)))
        yield sizes


def _trace(profiler: Any) -> List[Dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events: List[Dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        return events


def summary(events: List[Dict[str, Any]], sizes: Dict[str, List[int]]) -> List[Dict[str, Any]]:
    """By kernel: launches, microseconds, registers, shared memory, and bandwidth; longest first.

    The bandwidth is that of the launch's tensor arguments, each counted once, over its time: a lower bound
    of what the kernel moved where it reads or writes all of each.
    """
    by_name: Dict[str, List[Dict[str, Any]]] = {}
    for event in events:
        if event.get("cat") == "kernel":
            by_name.setdefault(str(event["name"]), []).append(event)
    rows = [_row(name, found, sizes.get(name, [])) for name, found in by_name.items()]
    return sorted(rows, key=lambda row: -float(row["microseconds"]))


def _row(name: str, events: List[Dict[str, Any]], sizes: List[int]) -> Dict[str, Any]:
    facts = events[0].get("args", {})
    total = float(sum(event["dur"] for event in events))
    moved = sum(sizes) if len(sizes) == len(events) else None
    return {
        "name": name[:200],
        "launches": len(events),
        "microseconds": total,
        "registers": facts.get("registers per thread"),
        "shared": facts.get("shared memory"),
        "grid": facts.get("grid"),
        "block": facts.get("block"),
        "occupancy": facts.get("est. achieved occupancy %"),
        "gigabytes_per_second": moved / total / 1e3 if moved and total else None,
    }
