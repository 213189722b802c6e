"""The vocabulary that a cell and the kit share: outcomes, modes, events.

A block file holds one JSON object a line. Its events, in the order they come:

``cell``      the first line: what was really imported, and where it ran
``start``     a trial begins; written and flushed before the test runs
``end``       a trial ended, with its outcome; a trial that started and has no end died
``inputs``    the random inputs of a failing trial were kept as bits
``missing``   the test is not there; the nearest names that are
``block_end`` the block ran through
"""

from __future__ import annotations

from enum import Enum

SCHEMA = 1


class Outcome(str, Enum):
    """What happened in one trial. Only PASSED and FAILED enter a failure rate."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    """Failed with the target signature."""
    FAILED_OTHERWISE = "FAILED_OTHERWISE"
    SKIPPED = "SKIPPED"
    """The test is there and declined to run."""
    COMPILE_ERROR = "COMPILE_ERROR"
    CRASHED = "CRASHED"
    TIMED_OUT = "TIMED_OUT"
    TEST_MISSING = "TEST_MISSING"
    BUILD_FAILED = "BUILD_FAILED"
    INFRA = "INFRA"
    """Engine, disk or GPU lost: says nothing about the test, and is tried again."""

    @property
    def counts(self) -> bool:
        """Whether the outcome enters a failure rate."""
        return self in (Outcome.PASSED, Outcome.FAILED)


class Mode(str, Enum):
    """How trials differ from each other. The rates of two modes are never mixed."""

    SEEDS = "seeds"
    """Another seed each trial, many trials a process."""
    FRESH = "fresh"
    """Another seed each trial, and a process of its own."""
    REPEAT = "repeat"
    """The same seed, so the same inputs, again and again in one process."""


class Event(str, Enum):
    """The kinds of line in a block file."""

    CELL = "cell"
    START = "start"
    END = "end"
    INPUTS = "inputs"
    MISSING = "missing"
    BLOCK_END = "block_end"
