"""Options that several subcommands share, under one name and with one meaning."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

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


def _together(*options: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    def decorate(function: _Function) -> _Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


matrix_options = _together(
    click.option(
        "--matrix", "matrix_file", type=click.Path(path_type=Path), default=Path("matrix.yaml"),
        show_default=True, help="The matrix to read.",
    ),
    click.option("--profile", help="Profile of the matrix. [default: gpu where a GPU is, else cpu]"),
    click.option("--only", multiple=True, metavar="GLOB", help="Only cells whose id matches; repeatable."),
    click.option(
        "--state", type=click.Path(path_type=Path, file_okay=False), default=Path(".repro"),
        show_default=True, help="Folder for the ledger, the evidence and the environments.",
    ),
)  # fmt: skip

engine_options = _together(
    click.option(
        "--engine", type=click.Choice(["auto", "docker", "venv", "host"]), default="auto",
        show_default=True, help="Where cells run.",
    ),
    click.option(
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
    click.option("--subject", metavar="PATH_OR_URL[@REV]", help="Code under test, instead of the matrix's."),
    click.option("--test", "test", metavar="NAME", help="Target test, such as 'test_backward[float32]'."),
    click.option(
        "--test-file", metavar="PATH",
        help="File that holds it: in the subject, or a file of your own outside it.",
    ),
)  # fmt: skip

trial_options = _together(
    click.option("--trials", type=click.IntRange(min=1), help="Trials in each cell, at most."),
    click.option(
        "--half-width", type=click.FloatRange(min=0, max=0.5),
        help="Stop a cell early, once its interval is this narrow to each side; 0 runs every trial.",
    ),
    click.option(
        "--mode", type=click.Choice([mode.value for mode in (Mode.SEEDS, Mode.FRESH, Mode.REPEAT)]),
        default=Mode.SEEDS.value,
        show_default=True, help="seeds: many a process; fresh: one each; repeat: one seed over and over.",
    ),
    click.option("--first-seed", type=click.IntRange(min=0), default=0, help="First seed. [default: 0]"),
    click.option("--jobs", type=click.IntRange(min=1), help="Cells at a time. [default: GPUs, or cores]"),
    click.option("--fresh", is_flag=True, help="Leave earlier trials aside and begin anew."),
)  # fmt: skip

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def same_options(command: str) -> str:
    """The command line of a subcommand, with what was given on the line of the one that runs.

    For a subcommand that takes every option of this one; `--json` is left out.
    """
    words = ["repro", command]
    for option, value in given_options(besides=("as_json",)):
        words += _as_words(option, value)
    return shlex.join(words)


def given_options(besides: Collection[str]) -> list[tuple[str, object]]:
    """The options that stand on the line of the subcommand that runs, and their values.

    Args:
        besides: parameters that are left out, by their names in Python.
    """
    context = click.get_current_context()
    named = ((param.name or "", param.opts[0]) for param in context.command.params)
    return [
        (option, context.params[name])
        for name, option in named
        if name not in besides and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]


def _as_words(option: str, value: object) -> list[str]:
    """An option as words of a command line."""
    if value is True:
        return [option]
    values = value if isinstance(value, tuple) else (value,)
    return [word for each in values for word in (option, str(each))]


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
