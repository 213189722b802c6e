"""A search over versions whose outcomes are planted: no process, no image."""

import hashlib
import random
from dataclasses import dataclass, field

from fake_engine import FakeEngine, bench, subject

from repro.bisect import Investigation, Question, VersionLine
from repro.bisect.lines import Candidate
from repro.cells import Cell
from repro.store import Ledger

NOISE = random.Random(7)


def triton_cell(number):
    return Cell(python="3.12", torch="2.11.0", triton=f"3.{number}.0", cuda="cpu", pinned_triton="3.6.0")


def number_of(cell):
    return int(cell.triton.split(".")[1])


def chance(seed, salt=""):
    """A number from 0 to 1 that is a function of the seed."""
    return int.from_bytes(hashlib.sha256(f"{salt}{seed}".encode()).digest()[:4], "big") / 2**32


def step(change, before, after):
    """The seed decides: it fails where its number is below the candidate's rate."""
    return lambda number, seed: (
        "FAILED" if chance(seed) < (after if number >= change else before) else "PASSED"
    )


def noisy(change, before, after):
    """Nothing but chance decides."""

    def outcome(number, seed):
        return "FAILED" if NOISE.random() < (after if number >= change else before) else "PASSED"

    return outcome


@dataclass
class Search:
    """What a search is made of, so that it can be run again."""

    home: object
    outcome: object
    size: int = 16
    keeps: bool = True
    seconds: float = 0.0
    said: list = field(default_factory=list)

    def __post_init__(self):
        self.engine = FakeEngine(trial=self._trial, keeps=self.keeps)

    def _trial(self, cell, seed):
        self.engine.clock.now += self.seconds
        return self.outcome(number_of(cell), seed)

    @property
    def line(self):
        cells = [triton_cell(number) for number in range(self.size)]
        candidates = [Candidate(name=cell.triton, label=f"triton {cell.triton}", cell=cell) for cell in cells]
        return VersionLine(axis="triton", candidates=candidates, subject=subject(self.home))

    def run(self, fresh=False, line=None, **question):
        with Ledger.open(self.home / "ledger.sqlite") as ledger:
            runner = bench(self.home, ledger, self.engine).runner
            investigation = Investigation(
                runner=runner,
                question=Question(**question),
                gpu=None,
                say=self.said.append,
                fresh=fresh,
                clock=self.engine.clock,
            )
            return investigation.versions(line or self.line, {"planted": True})
