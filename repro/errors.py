"""Every failure that the kit means a user to read.

An error says what happened, why as a rule, and the next command; its class carries the exit code.
Nothing but `repro.cli` turns one into text and a process's exit status.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every `repro` command."""

    DONE = 0
    USAGE = 2
    NOT_READY = 3
    BUILD_FAILED = 4
    INCONCLUSIVE = 5
    NOT_REPRODUCED = 6
    BUG = 70
    INTERRUPTED = 130


class ReproError(Exception):
    """What happened, why as a rule, and the next command.

    Args:
        what: one sentence, what happened.
        why: the usual reason, or "" where `what` says it all.
        next_step: the command or the edit that helps, or "".
    """

    exit_code = ExitCode.BUG

    def __init__(self, what: str, *, why: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.next_step = next_step


class UsageError(ReproError):
    """A wrong option, or mistakes in matrix.yaml."""

    exit_code = ExitCode.USAGE


class NotReadyError(ReproError):
    """The machine lacks something: an engine, a GPU, disk space."""

    exit_code = ExitCode.NOT_READY


class BuildError(ReproError):
    """A cell's image or environment could not be made."""

    exit_code = ExitCode.BUILD_FAILED


class NotReproducedError(ReproError):
    """The failure that is asked about was not seen."""

    exit_code = ExitCode.NOT_REPRODUCED
