"""What is asked of a runner, and how far it got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from repro.cells import Cell
from repro.errors import NotReadyError
from repro.subject import Subject
from repro.trial.records import Mode

KEPT_INPUTS = 4
"""Failing trials of a cell whose random inputs are kept: they may take tens of megabytes each."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is tried: the code under test, in a cell."""

    cell: Cell
    subject: Subject


@dataclass(frozen=True, kw_only=True)
class Order:
    """Trials to run in one target.

    Args:
        seeds: one a trial; with `Mode.REPEAT` the same seed again and again.
        mode: how trials differ from each other.
        gpu: index of the GPU to use, or None.
        first_trial: number of the first trial, where earlier blocks ran the same seed already.
        keep_inputs: failing trials whose random inputs are kept as bits, at most.
        env: environment variables on top of the cell's own.
        replay: with `Mode.REPLAY`, the file of kept inputs of each seed that has one; all in one folder.
        aside: folder of the state that takes the records in place of `blocks/`: such trials never reach the
            ledger, and so enter no rate.
        once: run one process alone, however many trials it leaves undone.
        cache: folder of the kernel caches, in place of the cell's own.
        extra: further fields of the request.
        terminal: let the process have the user's terminal.
    """

    seeds: Sequence[int]
    mode: Mode = Mode.SEEDS
    gpu: int | None = None
    first_trial: int = 0
    keep_inputs: int = KEPT_INPUTS
    env: tuple[tuple[str, str], ...] = ()
    replay: Mapping[int, Path] = field(default_factory=dict)
    aside: str = ""
    once: bool = False
    cache: Path | None = None
    extra: Mapping[str, object] = field(default_factory=dict)
    terminal: bool = False

    @property
    def asked(self) -> frozenset[int] | None:
        """Seeds that its trials may have; None where the cell goes back to those of kept inputs."""
        return None if "reduce" in self.extra else frozenset(self.seeds)


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How far an order got.

    Args:
        ended: trials that ended.
        gave_up: why it stopped before its last one, or "".
        infra: whether what stopped it was the engine, the disk or the GPU, and not the test.
        busy: seconds of the trials, each process's first one at the pace of its others.
        folders: of the blocks, in the order in which they ran.
    """

    ended: int
    gave_up: str = ""
    infra: bool = False
    busy: float = 0.0
    folders: tuple[Path, ...] = ()

    def require(self, what: str, *, resumes: bool = False) -> None:
        """Go no further with trials that the engine, the disk or the GPU stopped.

        Args:
            what: what could not be done, and where.
            resumes: whether the same command goes on where this one stopped.

        Raises:
            NotReadyError: `infra`.
        """
        if self.infra:
            raise NotReadyError(
                f"{what}: {self.gave_up}",
                why="the engine, the disk or the GPU failed, not the test",
                next_step="`repro doctor`, then the same command"
                + ("; it goes on where it stopped" if resumes else " again"),
            )


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop while a trial was running."""
