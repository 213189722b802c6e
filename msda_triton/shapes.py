"""The levels' sizes as a tensor where the kernels want it."""

from functools import lru_cache

import torch
from torch import Tensor

from .checks import Shapes, level_sizes


def shapes_on(img_shapes: Shapes, device: torch.device) -> Tensor:
    """`img_shapes` as a contiguous tensor [L, 2] on `device`; numbers are sent there once and kept."""
    if isinstance(img_shapes, Tensor) and img_shapes.device == device:
        return img_shapes.contiguous()
    return _sent(tuple(level_sizes(img_shapes)), device)


@lru_cache(maxsize=256)
def _sent(sizes: tuple[tuple[int, int], ...], device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # what is kept must serve training later on
        return torch.tensor(sizes, dtype=torch.int32, device=device)
