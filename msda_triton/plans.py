"""A kernel with its constants, compiled once and then launched past Triton's own argument handling."""

from __future__ import annotations

from typing import Any

import triton
from torch import Tensor
from triton.compiler import CompiledKernel
from triton.runtime import driver

from .kernels import deformable_attention_forward_kernel

INTERPRETED = not isinstance(deformable_attention_forward_kernel, triton.runtime.JITFunction)
VERSION = tuple(map(int, triton.__version__.split(".")[:2]))
TAKES_CONSTANTS = VERSION >= (3, 3)  # a compiled kernel takes its constants along, and ignores them
HOOKED = triton.knobs.runtime if VERSION >= (3, 4) else CompiledKernel  # where profilers leave their hooks
OWN_FILE = CompiledKernel.__init__.__code__.co_filename
UNWATCHED = (None, None, None)  # a launch's description, and the hooks that would be given it


class Plan:
    """A Triton kernel for given constants.

    At a decoder's size a launch costs more than the kernel: Triton looks at every argument again to find the
    compiled kernel. Here only types, device and alignment are looked at. Tensors come first in the kernel's
    arguments, then whole numbers that it is not specialised for, then constants.
    """

    def __init__(self, kernel: Any, constants: dict[str, Any], warps: int = 4) -> None:
        self.kernel, self.constants, self.warps = kernel, constants, warps
        self.compiled: dict[tuple[Any, ...], Any] = {}
        self.trailing = tuple(constants[name] for name in kernel.arg_names if name in constants)
        self.trailing = self.trailing if TAKES_CONSTANTS else ()

    def __call__(
        self, grid: tuple[int, int, int], tensors: tuple[Tensor, ...], numbers: tuple[int, ...]
    ) -> None:
        """Launch on the current stream of the tensors' device, the current one; tensors are contiguous."""
        if INTERPRETED:
            self._launch(grid, tensors, numbers)
            return
        device = tensors[0].get_device()
        key = (device, *[tensor.dtype for tensor in tensors])
        pointers = [tensor.data_ptr() for tensor in tensors]
        bits = 0
        for pointer in pointers:
            bits |= pointer
        if bits & 15:  # what is compiled may load 16 bytes at a time
            self._launch(grid, tensors, numbers)
            return
        compiled = self.compiled.get(key)
        if compiled is None:
            self.compiled[key] = self._launch(grid, tensors, numbers)
        elif _is_watched():
            compiled[grid](*tensors, *numbers, *self.trailing)
        else:
            stream = driver.active.get_current_stream(device)
            handles = compiled.function, compiled.packed_metadata
            compiled.run(*grid, stream, *handles, *UNWATCHED, *pointers, *numbers, *self.trailing)

    def _launch(
        self, grid: tuple[int, int, int], tensors: tuple[Tensor, ...], numbers: tuple[int, ...]
    ) -> Any:
        return self.kernel[grid](*tensors, *numbers, **self.constants, num_warps=self.warps, num_stages=1)


def _is_watched() -> bool:
    """Whether a profiler has hooked launches, or somebody has wrapped them, and so must see the tensors."""
    enter, leave = HOOKED.launch_enter_hook, HOOKED.launch_exit_hook
    code = getattr(CompiledKernel.__getitem__, "__code__", None)
    own = code is not None and code.co_filename == OWN_FILE
    return not own or bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))
