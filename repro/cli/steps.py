"""Next commands as they are printed: with the options that this one was given, so that they run as told.

Whoever writes a next step names the command and what is new about it, such as "`repro matrix --mode fresh`".
Here it gets the rest: another matrix, engine, state folder or test would be lost otherwise.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import click
from click.core import ParameterSource

from repro import ui
from repro.cli import COMMANDS, load
from repro.cli.options import DURATION, SharedOption, written
from repro.errors import ReproError

_NAMES = "|".join(sorted(COMMANDS, key=len, reverse=True))
COMMAND = re.compile(rf"(?<![\w./-])repro ({_NAMES})(?![\w-])")
"""A command in a sentence: its name; the options that it names itself follow."""

_OPTION = re.compile(r" (--[a-z][a-z-]*)")
_VALUE = re.compile(r"[ =]('[^']*'|\"[^\"]*\"|[^\s`,;]+)")

_ONCE = ("as_json", "fresh", "force", "dry_run")
"""Of the same command, what is not given again: what was set aside would be set aside once more."""


def completed(text: str, context: click.Context | None = None) -> str:
    """A text in which every command of the kit has the options that were given to the one that runs.

    A command takes over the options that it shares with the one that runs, and all of them if it is the same
    one; what it names itself stays.

    Args:
        text: such as "`repro status` lists the failing seeds".
        context: of the command that runs; None for the one of this thread.
    """
    context = context or click.get_current_context()
    parts, done = [], 0
    for found in COMMAND.finditer(text):
        named, end = named_options(found[1], text[found.end() :])
        words = list(_taken_over(context, found[1], besides=named))
        parts += [text[done : found.end() + end], *([f" {shlex.join(words)}"] if words else [])]
        done = found.end() + end
    return "".join([*parts, text[done:]])


def tell(error: ReproError, context: click.Context | None = None) -> None:
    """Print an error whose next step is completed.

    Args:
        error: what happened.
        context: as of `completed`.
    """
    error.next_step = completed(error.next_step, context)
    ui.print_error(error)


def context_of(arguments: Sequence[str]) -> click.Context:
    """The context of a command that has ended, from its command line."""
    name, *rest = arguments
    return load(name).make_context(name, rest, resilient_parsing=True)


def named_options(name: str, rest: str) -> tuple[set[str], int]:
    """The options that follow a command's name in a text, and where they end.

    Args:
        name: of the subcommand.
        rest: the text behind it.
    """
    known = {each: option for option in _options(load(name)) for each in option.opts + option.secondary_opts}
    named, end = set[str](), 0
    while (found := _OPTION.match(rest, end)) and found[1] in known:
        named.add(known[found[1]].opts[0])
        value = None if known[found[1]].is_flag else _VALUE.match(rest, found.end())
        end = (value or found).end()
    return named, end


def given_options(context: click.Context, besides: Collection[str] = ()) -> list[click.Option]:
    """The options that stand on the command line.

    Args:
        context: of the command.
        besides: parameters that are left out, by their names in Python.
    """
    return [
        option
        for option in _options(context.command)
        if option.name not in besides
        and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    ]


def _taken_over(context: click.Context, name: str, besides: Collection[str]) -> Iterator[str]:
    """Words of the options that another command line takes over."""
    shared = {each.opts[0] for each in _options(load(name)) if isinstance(each, SharedOption)}
    for option in given_options(context, besides=_ONCE if name == context.command.name else ()):
        fits = name == context.command.name or (isinstance(option, SharedOption) and option.opts[0] in shared)
        if fits and option.opts[0] not in besides:
            yield from _words(option, context.params[option.name or ""])


def _words(option: click.Option, value: Any) -> Iterator[str]:
    """An option as it is written on a command line."""
    if option.is_flag:
        yield from option.opts[:1] if value in (True, option.flag_value) else option.secondary_opts[:1]
        return
    for each in value if option.multiple else (value,):
        yield from (option.opts[0], written(each) if option.type is DURATION else str(each))


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]
