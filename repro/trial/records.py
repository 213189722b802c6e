"""The vocabulary that a cell and the kit share: outcomes, modes, events.

A block file holds one JSON object a line. Its events, in the order they come:

``cell``      the first line: what was really imported, and where it ran
``start``     a trial begins; written and flushed before the test runs
``end``       a trial ended, with its outcome; a trial that started and has no end died
``rerun``     a failing seed begins to run again so that its inputs are kept; not a trial
``own_seeds`` the test seeds a library's generator itself: trials of other seeds draw the same from it
``inputs``    the random inputs of a failing trial were kept as bits, or why not
``missing``   in place of trials and the end: the test is not there, or its file cannot be imported
``tests``     the ids that match, where the request asked for a list
``case``      what the case is made of: arguments, and constants that its trial came across
``compiled``  a kernel was compiled for a GPU that is not here, or why not
``profile``   what torch's profiler saw of the kernels of a trial
``reduced``   a failing trial whose inputs were made small
``block_end`` the block ran through, or stopped itself and says why
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
    OTHER_INPUTS = "OTHER_INPUTS"
    """Kept inputs were to be replayed, and the test drew other shapes or types than those."""
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
    REPLAY = "replay"
    """Kept inputs, the same to the last bit; a trial's seed stands for its inputs."""

    @property
    def repeats(self) -> bool:
        """Whether trials of one seed are told apart by their number."""
        return self in (Mode.REPEAT, Mode.REPLAY)


class Event(str, Enum):
    """The kinds of line in a block file."""

    CELL = "cell"
    START = "start"
    END = "end"
    RERUN = "rerun"
    OWN_SEEDS = "own_seeds"
    INPUTS = "inputs"
    MISSING = "missing"
    TESTS = "tests"
    CASE = "case"
    REDUCED = "reduced"
    COMPILED = "compiled"
    PROFILE = "profile"
    CIRCUMSTANCES = "circumstances"
    BLOCK_END = "block_end"
