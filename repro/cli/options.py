"""Options that several subcommands share, under one name and with one meaning."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from repro.engines.base import GpuMode
from repro.trial.records import Mode

if TYPE_CHECKING:
    from repro.cli.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Place:
    """What the options that open a workspace say, unopened.

    Args:
        matrix_file: the matrix to read.
        profile: one of its profiles, or None for the one that fits the machine.
        only: globs of cell ids.
        state: folder for ledger and evidence.
        engine: where cells run.
        gpu: how a GPU gets into a container.
    """

    matrix_file: Path
    profile: str | None
    only: tuple[str, ...]
    state: Path
    engine: str
    gpu: str

    def open(self) -> Workspace:
        """Read the matrix and choose its cells.

        Raises:
            UsageError: mistakes in matrix.yaml, an unknown profile, a glob that matches nothing.
        """
        from repro.cli.workspace import open_workspace

        return open_workspace(
            self.matrix_file,
            profile=self.profile,
            only=self.only,
            state=self.state,
            engine=self.engine,
            gpu=self.gpu,
        )


_Function = TypeVar("_Function", bound=Callable[..., object])


class SharedOption(click.Option):
    """An option that means the same in every subcommand that has it: the next command is given it again."""


shared_option = functools.partial(click.option, cls=SharedOption)
"""As `click.option`, for a `SharedOption`."""


def _together(*options: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    def decorate(function: _Function) -> _Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


matrix_options = _together(
    shared_option(
        "--matrix", "matrix_file", type=click.Path(path_type=Path), default=Path("matrix.yaml"),
        show_default=True, help="The matrix to read.",
    ),
    shared_option("--profile", help="Profile of the matrix. [default: gpu where a GPU is, else cpu]"),
    shared_option("--only", multiple=True, metavar="GLOB", help="Only cells whose id matches; repeatable."),
    shared_option(
        "--state", type=click.Path(path_type=Path, file_okay=False), default=Path(".repro"),
        show_default=True, help="Folder for the ledger, the evidence and the environments.",
    ),
)  # fmt: skip

engine_options = _together(
    shared_option(
        "--engine", type=click.Choice(["auto", "docker", "venv", "host"]), default="auto",
        show_default=True, help="Where cells run.",
    ),
    shared_option(
        "--gpu", type=click.Choice([mode.value for mode in GpuMode]), default=GpuMode.AUTO.value,
        show_default=True, help="How a GPU gets into a container.",
    ),
)  # fmt: skip


def workspace_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of the matrix and of the engine, handed on as one `Place`."""

    @functools.wraps(function)
    def gathered(
        matrix_file: Path,
        profile: str | None,
        only: tuple[str, ...],
        state: Path,
        engine: str,
        gpu: str,
        **options: Any,
    ) -> Any:
        place = Place(
            matrix_file=matrix_file, profile=profile, only=only, state=state, engine=engine, gpu=gpu
        )
        return function(place, **options)

    return matrix_options(engine_options(gathered))


subject_options = _together(
    shared_option("--subject", metavar="PATH_OR_URL[@REV]", help="Code under test, instead of the matrix's."),
    shared_option("--test", "test", metavar="NAME", help="Target test, such as 'test_backward[float32]'."),
    shared_option(
        "--test-file", metavar="PATH",
        help="File that holds it: in the subject, or a file of your own outside it.",
    ),
)  # fmt: skip

trial_options = _together(
    shared_option("--trials", type=click.IntRange(min=1), help="Trials in each cell, at most."),
    shared_option(
        "--half-width", type=click.FloatRange(min=0, max=0.5),
        help="Stop a cell early, once its interval is this narrow to each side; 0 runs every trial.",
    ),
    shared_option(
        "--mode", type=click.Choice([mode.value for mode in (Mode.SEEDS, Mode.FRESH, Mode.REPEAT)]),
        default=Mode.SEEDS.value,
        show_default=True, help="seeds: many a process; fresh: one each; repeat: one seed over and over.",
    ),
    shared_option("--first-seed", type=click.IntRange(min=0), default=0, help="First seed. [default: 0]"),
    shared_option("--jobs", type=click.IntRange(min=1), help="Cells at a time. [default: GPUs, or cores]"),
    shared_option("--fresh", is_flag=True, help="Leave earlier trials aside and begin anew."),
)  # fmt: skip

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


_PARTS = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


class _Duration(click.ParamType[float]):
    """Seconds, from text such as `90s`, `20m` or `1h30m`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        if isinstance(value, float):
            return value
        found = _PARTS.fullmatch(str(value).replace(" ", ""))
        hours, minutes, seconds = (float(part or 0) for part in (found.groups() if found else (0, 0, 0)))
        total = 3600 * hours + 60 * minutes + seconds
        if total <= 0:
            self.fail(f"{value!r} is no length of time: write such as 90s, 20m or 1h30m", param, ctx)
        return total


DURATION = _Duration()


def written(seconds: float) -> str:
    """Seconds as `DURATION` reads them: 5400.0 as "1h30m"."""
    parts = [(seconds // 3600, "h"), (seconds % 3600 // 60, "m"), (seconds % 60, "s")]
    return "".join(f"{number:g}{unit}" for number, unit in parts if number)
