"""Planted: a corner value that a random draw hits now and then, in a test without tensors."""

import random

CAUSE = "a rare draw"
DECOYS = False


def blocks(size, block):
    return size // block + 1


def test_it():
    names = [random.choice("abc") for _ in range(4)] if DECOYS else []
    size, block = random.randint(1, 60), random.choice([8, 16])
    random.shuffle(names)
    assert blocks(size, block) * block - size < block, (size, block)
