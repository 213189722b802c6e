"""Clear errors for arguments that do not fit together."""

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

Shapes: TypeAlias = Tensor | Sequence[Sequence[int]]

PADDING_MODES = ("border", "zeros")
ARITHMETICS = ("direct", "aten")
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_arguments(
    img: Tensor,
    img_shapes: Shapes,
    sampling_points: Tensor,
    attention_weights: Tensor,
    padding_mode: str,
    arithmetic: str = "direct",
    *,
    values: bool = True,
) -> None:
    """Raise ValueError or TypeError, naming the argument, what it is and what it should be.

    Nothing here waits for a GPU: the values of `img_shapes` are looked at only where they lie on the host,
    and only if `values`: while a call is traced, a tensor has none.
    """
    _check_choice("padding_mode", padding_mode, PADDING_MODES)
    _check_choice("arithmetic", arithmetic, ARITHMETICS)
    _check_dimensions(img, sampling_points, attention_weights)
    _check_dtypes(img, sampling_points, attention_weights)
    for name, tensor in (("sampling_points", sampling_points), ("attention_weights", attention_weights)):
        if tensor.device != img.device:
            raise ValueError(f"{name} is on {tensor.device}, img on {img.device}: they must share a device")
    _check_levels(img, img_shapes, sampling_points.shape[3], values)


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")


def _check_dimensions(img: Tensor, sampling_points: Tensor, attention_weights: Tensor) -> None:
    of_img, of_points, of_weights = img.shape, sampling_points.shape, attention_weights.shape
    if len(of_img) != 4:
        raise ValueError(f"img must be [B, I, H, C], got shape {tuple(of_img)}")
    if len(of_points) != 6 or of_points[-1] != 2:
        raise ValueError(f"sampling_points must be [B, N, H, L, P, 2], got shape {tuple(of_points)}")
    if of_weights != of_points[:-1]:
        raise ValueError(
            f"attention_weights must be [B, N, H, L, P] = {tuple(of_points[:-1])} as "
            f"sampling_points says, got shape {tuple(of_weights)}"
        )
    for name, index in (("batches", 0), ("heads", 2)):
        if of_img[index] != of_points[index]:
            raise ValueError(f"img has {of_img[index]} {name}, sampling_points has {of_points[index]}")


def _check_dtypes(img: Tensor, sampling_points: Tensor, attention_weights: Tensor) -> None:
    if img.dtype not in DTYPES:
        raise TypeError(f"img must be float16, bfloat16, float32 or float64, not {img.dtype}")
    allowed = (img.dtype,) if img.dtype == torch.float64 else (img.dtype, torch.float32)
    for name, tensor in (("sampling_points", sampling_points), ("attention_weights", attention_weights)):
        if tensor.dtype not in allowed:
            wanted = " or ".join(sorted(set(map(str, allowed))))
            raise TypeError(f"{name} must be {wanted} beside an img of {img.dtype}, not {tensor.dtype}")


def _check_levels(img: Tensor, img_shapes: Shapes, levels: int, values: bool) -> None:
    if isinstance(img_shapes, Tensor):
        if img_shapes.dim() != 2 or img_shapes.shape[1] != 2:
            raise ValueError(
                f"img_shapes must be [L, 2] as (height, width), got shape {tuple(img_shapes.shape)}"
            )
        if img_shapes.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"img_shapes must be int32 or int64, not {img_shapes.dtype}")
        if img_shapes.device.type != "cpu" and img_shapes.device != img.device:
            raise ValueError(f"img_shapes is on {img_shapes.device}, img on {img.device}")
    if len(img_shapes) != levels:
        raise ValueError(f"img_shapes has {len(img_shapes)} levels, sampling_points has {levels}")
    if isinstance(img_shapes, Tensor) and (img_shapes.device.type != "cpu" or not values):
        return
    sizes = level_sizes(img_shapes)
    if any(height < 1 or width < 1 for height, width in sizes):
        raise ValueError(f"every level must be at least 1x1, got img_shapes {sizes}")
    pixels = sum(height * width for height, width in sizes)
    if pixels != img.shape[1]:
        raise ValueError(f"img has {img.shape[1]} pixels, but img_shapes {sizes} describe {pixels}")


def level_sizes(img_shapes: Shapes) -> list[tuple[int, int]]:
    """(height, width) of each level as numbers; waits for the GPU if they lie there."""
    rows = img_shapes.tolist() if isinstance(img_shapes, Tensor) else img_shapes
    return [(int(height), int(width)) for height, width in rows]
