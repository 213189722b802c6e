"""Planted: linear interpolation that ends one pixel before the border."""

import torch
from decoys import look_suspicious

CAUSE = "wrong formula or border rule"
DECOYS = False


def sample(image, points, last):
    low = points.floor().long()
    share = points - low
    ends = [torch.clamp(low + step, 0, last) for step in (0, 1)]
    return image[ends[0]] * (1 - share) + image[ends[1]] * share


def test_it():
    if DECOYS:
        look_suspicious()
    image, points = torch.rand(64), torch.rand(16) * 63
    torch.testing.assert_close(sample(image, points, 62), sample(image, points, 63))
