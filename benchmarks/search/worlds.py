"""Points of the grid, and the simulated candidates of one run."""

from __future__ import annotations

import random
from dataclasses import dataclass

SIZES = (16, 32, 128, 1024)
STEPS = ((0, 0.1), (0, 0.3), (0, 1), (0.05, 0.3), (0.003, 0.09), (0.2, 0.8))
STEADY = (0, 0.05, 0.3, 1)


@dataclass(frozen=True)
class Point:
    """One row of the grid: how candidates' rates are drawn."""

    size: int
    shape: str  # step, steady, ramp, two steps, untestable
    old: float
    new: float

    @property
    def name(self) -> str:
        return f"N{self.size} {self.shape} {self.old:g}->{self.new:g}"


class World:
    """The candidates of one run: rates, untestable ones, streams."""

    def __init__(self, point: Point, run: int) -> None:
        dice = random.Random(f"{point.name} {run}")
        size = point.size
        self.point, self.run = point, run
        self.change = dice.randrange(1, size)
        self.steps = [self.change]
        self.rates = [point.old if i < self.change else point.new for i in range(size)]
        self.untestable: set[int] = set()
        if point.shape == "steady":
            self.steps = []
        elif point.shape == "ramp":
            first, last = size * 3 // 8, size * 5 // 8
            self.steps = list(range(first, last))
            self.rates = [
                point.old + (point.new - point.old) * min(1, max(0, (i + 1 - first) / (last - first)))
                for i in range(size)
            ]
        elif point.shape == "two steps":
            self.steps = [size // 3, size * 2 // 3]
            middle = point.old + (point.new - point.old) / 3
            self.rates = [
                (point.old, middle, point.new)[sum(i >= s for s in self.steps)] for i in range(size)
            ]
        elif point.shape == "untestable":
            while len(self.untestable) < size // 5:
                start = dice.randrange(1, size - 1)
                self.untestable |= set(range(start, min(size - 1, start + max(1, size // 32))))
        self.rewind()

    def rewind(self) -> None:
        """Start every stream anew, for the next method."""
        self.streams: dict[int, random.Random] = {}
        self.trials = 0
        self.built: set[int] = set()

    def fails(self, index: int) -> bool:
        """One trial."""
        if index not in self.streams:
            self.streams[index] = random.Random(f"{self.point.name} {self.run} {index}")
        self.built.add(index)
        self.trials += 1
        return self.streams[index].random() < self.rates[index]

    def visit(self, index: int) -> bool:
        """Build a candidate; False if it cannot be tested."""
        self.built.add(index)
        return index not in self.untestable


def grid() -> list[Point]:
    points = []
    for size in (128, 32, 16, 1024):
        for old, new in STEPS:
            points += [Point(size, "step", old, new), Point(size, "step", new, old)]
        points += [Point(size, "steady", rate, rate) for rate in STEADY]
        points += [Point(size, shape, 0, 0.3) for shape in ("ramp", "two steps", "untestable")]
    return points
