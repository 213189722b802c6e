"""The Triton kernels: plain pointers and masks, one source for Triton 3.0 to 3.9."""

from .backward import deformable_attention_backward_kernel
from .coarse import deformable_attention_coarse_kernel
from .density import deformable_attention_density_kernel, deformable_attention_grid_kernel
from .forward import deformable_attention_forward_kernel
from .total import deformable_attention_total_kernel

__all__ = [
    "deformable_attention_backward_kernel",
    "deformable_attention_coarse_kernel",
    "deformable_attention_density_kernel",
    "deformable_attention_forward_kernel",
    "deformable_attention_grid_kernel",
    "deformable_attention_total_kernel",
]
