"""Planted: a corner value that a random draw hits now and then, in a test without tensors."""

import random

CAUSE = "a rare draw"
DECOYS = False


def smallest(numbers):
    least = float("inf")
    for number in numbers:
        least = min(least, number)
    return least


def test_it():
    names = [random.choice("abc") for _ in range(4)] if DECOYS else []
    count = random.randint(0, 9)
    numbers = [random.random() for _ in range(count)]
    random.shuffle(names)
    assert smallest(numbers) == min(numbers, default=None), count
