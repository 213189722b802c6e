"""Planted: a race, in which one of two updates of the same element is lost now and then."""

import random

import torch
from decoys import look_suspicious

CAUSE = "race"
DECOYS = False


def scatter(values, places, size):
    out = torch.zeros(size, dtype=values.dtype)
    lost = random.SystemRandom().randrange(len(values)) if random.SystemRandom().random() < 0.3 else None
    for i, place in enumerate(places.tolist()):
        if i != lost:
            out[place] += values[i]
    return out


def test_it():
    if DECOYS:
        look_suspicious()
    values, places = torch.rand(40) + 0.5, torch.randint(0, 8, (40,))
    expected = torch.zeros(8, dtype=values.dtype).index_add_(0, places, values)
    torch.testing.assert_close(scatter(values, places, 8), expected, rtol=1e-4, atol=1e-4)
