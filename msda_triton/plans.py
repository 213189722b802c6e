"""A kernel with its constants, compiled once and then launched past Triton's own argument handling."""

from __future__ import annotations

from typing import Any

import triton
from torch import Tensor

from .kernels import deformable_attention_forward_kernel

INTERPRETED = not isinstance(deformable_attention_forward_kernel, triton.runtime.JITFunction)
VERSION = tuple(map(int, triton.__version__.split(".")[:2]))
TAKES_CONSTANTS = VERSION >= (3, 3)  # a compiled kernel takes its constants along, and ignores them


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
        key = (tensors[0].get_device(), *[tensor.dtype for tensor in tensors])
        bits = 0
        for tensor in tensors:
            bits |= tensor.data_ptr()
        if bits & 15:  # what is compiled may load 16 bytes at a time
            self._launch(grid, tensors, numbers)
            return
        compiled = self.compiled.get(key)
        if compiled is None:
            self.compiled[key] = self._launch(grid, tensors, numbers)
            return
        compiled[grid](*tensors, *numbers, *self.trailing)

    def _launch(
        self, grid: tuple[int, int, int], tensors: tuple[Tensor, ...], numbers: tuple[int, ...]
    ) -> Any:
        return self.kernel[grid](*tensors, *numbers, **self.constants, num_warps=self.warps, num_stages=1)
