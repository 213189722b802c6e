"""Multi-scale deformable attention (Deformable DETR, arXiv 2010.04159) in Triton."""

from .compat import ms_deform_attn
from .functional import multiscale_deformable_attention, triton_multiscale_deformable_attention
from .module import MultiscaleDeformableAttention
from .native import native_multiscale_deformable_attention
from .reference import reference_multiscale_deformable_attention

__all__ = [
    "MultiscaleDeformableAttention",
    "ms_deform_attn",
    "multiscale_deformable_attention",
    "native_multiscale_deformable_attention",
    "reference_multiscale_deformable_attention",
    "triton_multiscale_deformable_attention",
]
