"""Wrong arguments: which error, and what it says."""

import pytest
import torch

from msda_triton import (
    MultiscaleDeformableAttention,
    native_multiscale_deformable_attention,
    triton_multiscale_deformable_attention,
)

GOOD = {
    "img": torch.zeros(2, 10, 3, 4),
    "img_shapes": [(2, 3), (2, 2)],
    "sampling_points": torch.zeros(2, 5, 3, 2, 1, 2),
    "attention_weights": torch.zeros(2, 5, 3, 2, 1),
    "padding_mode": "border",
    "align_corners": False,
}

BAD = [
    ({"img": torch.zeros(2, 10, 12)}, ValueError, "img must be [B, I, H, C], got shape (2, 10, 12)"),
    ({"img": torch.zeros(1, 10, 3, 4)}, ValueError, "img has 1 batches, sampling_points has 2"),
    ({"img": torch.zeros(2, 10, 6, 4)}, ValueError, "img has 6 heads, sampling_points has 3"),
    (
        {"img": torch.zeros(2, 9, 3, 4)},
        ValueError,
        "img has 9 pixels, but img_shapes [(2, 3), (2, 2)] describe 10",
    ),
    (
        {"img": torch.zeros(2, 10, 3, 4, dtype=torch.int32)},
        TypeError,
        "img must be float16, bfloat16, float32 or float64, not torch.int32",
    ),
    (
        {"sampling_points": torch.zeros(2, 5, 3, 2, 2)},
        ValueError,
        "sampling_points must be [B, N, H, L, P, 2], got shape (2, 5, 3, 2, 2)",
    ),
    (
        {"sampling_points": torch.zeros(2, 5, 3, 2, 1, 2, dtype=torch.float64)},
        TypeError,
        "sampling_points must be torch.float32 beside an img of torch.float32, not torch.float64",
    ),
    (
        {"attention_weights": torch.zeros(2, 5, 3, 2)},
        ValueError,
        "attention_weights must be [B, N, H, L, P] = (2, 5, 3, 2, 1) as sampling_points says, "
        "got shape (2, 5, 3, 2)",
    ),
    ({"img_shapes": [(2, 5)]}, ValueError, "img_shapes has 1 levels, sampling_points has 2"),
    (
        {"img_shapes": [(2, 5), (0, 7)]},
        ValueError,
        "every level must be at least 1x1, got img_shapes [(2, 5), (0, 7)]",
    ),
    (
        {"img_shapes": torch.zeros(2, 3, dtype=torch.int64)},
        ValueError,
        "img_shapes must be [L, 2] as (height, width), got shape (2, 3)",
    ),
    (
        {"img_shapes": torch.tensor([[2.0, 3.0], [2.0, 2.0]])},
        TypeError,
        "img_shapes must be int32 or int64, not torch.float32",
    ),
    ({"padding_mode": "mirror"}, ValueError, "padding_mode must be one of 'border', 'zeros', not 'mirror'"),
    (
        {"attention_weights": torch.zeros(2, 5, 3, 2, 1, device="meta")},
        ValueError,
        "attention_weights is on meta, img on cpu: they must share a device",
    ),
]


@pytest.mark.parametrize(
    "operator", [native_multiscale_deformable_attention, triton_multiscale_deformable_attention]
)
@pytest.mark.parametrize(("change", "kind", "message"), BAD)
def test_bad_arguments(operator, change, kind, message):
    with pytest.raises(kind) as caught:
        operator(**{**GOOD, **change})
    assert str(caught.value) == message


def test_unknown_arithmetic():
    with pytest.raises(ValueError, match="arithmetic must be one of 'direct', 'aten', not 'exact'"):
        triton_multiscale_deformable_attention(**GOOD, arithmetic="exact")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((8, 8, 1, 2, 0, "border", False), "num_points must be at least 1"),
        ((8, 9, 1, 2, 1, "border", False), "hidden_dim 9 cannot be shared out over 2 heads"),
        ((8, 8, 1, 2, 1, "mirror", False), "padding_mode must be one of 'border', 'zeros', not 'mirror'"),
    ],
)
def test_bad_module(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiscaleDeformableAttention(*arguments)


def test_bad_reference_points():
    module = MultiscaleDeformableAttention(8, 8, 1, 2, 1, "border", False)
    with pytest.raises(ValueError, match=r"reference_points must be .* got shape \(1, 3, 3\)"):
        module(torch.zeros(1, 4, 8), [(2, 2)], torch.zeros(1, 3, 8), torch.zeros(1, 3, 3))


def test_ring():
    """A fresh module looks outwards: eight heads towards the edge of a square, each point a pixel further."""
    module = MultiscaleDeformableAttention(8, 8, 1, 8, 2, "zeros", False)
    ring = module.sampling_offsets.bias.view(8, 2, 2)
    torch.testing.assert_close(ring.abs().amax(-1), torch.tensor([[1.0, 2.0]]).expand(8, -1))
    torch.testing.assert_close(ring[1, 0], torch.tensor([1.0, 1.0]))
