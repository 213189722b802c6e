"""Planted: interpolation at coordinates that, computed in two ways, fall to either side of a pixel."""

import torch
from decoys import look_suspicious

CAUSE = "jump of the derivative"
DECOYS = False
SIZE = 63


def interpolate(image, x):
    low = x.detach().floor().clamp(0, SIZE - 1).long()
    share = x - low
    return image[low] * (1 - share) + image[low + 1] * share


def directly(image, points):
    return interpolate(image, points * SIZE)


def by_the_grid(image, points):
    grid = 2.0 * points - 1.0
    return interpolate(image, (grid + 1.0) * (SIZE / 2.0))


def test_it():
    if DECOYS:
        look_suspicious()
    image = torch.rand(SIZE + 1)
    points = torch.randint(1, SIZE * 24, (12,)) / (SIZE * 24.0)
    ours, theirs = points.clone().requires_grad_(), points.clone().requires_grad_()
    directly(image, ours).sum().backward()
    by_the_grid(image, theirs).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4)
