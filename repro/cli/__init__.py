"""The `repro` command: parse, call, print; nothing else.

Subcommands are imported when they are used, so that `repro --help` stays quick.
"""

from __future__ import annotations

import errno
import importlib
import signal
import sys
from collections.abc import Sequence

import click

from repro import __version__
from repro.errors import ExitCode, NotReadyError, ReproError

COMMANDS = {
    "init": "Write a matrix.yaml for this repository: its test, its code, stacks for this machine.",
    "plan": "Show the cells, what is left out and why, and how long it would take.",
    "doctor": "Check this machine: engine, GPU, disk, network, compilers; each with the fix.",
    "build": "Build the images or environments of the cells, and run nothing.",
    "matrix": "Run the target test over many seeds in every cell; end with a table of failure rates.",
    "bisect": "Find since which version, or since which commit, it fails, with a stated confidence.",
    "replay": "Run failing inputs again, bit for bit: is the failure a function of them, and where?",
    "inspect": "Look inside a trial: the numbers of every operation, which side is wrong, derivatives.",
    "debug": "Stop a failing trial in pdb: inside the cell, at the assertion, tensors at hand.",
    "diagnose": "Find out why: run experiments on failing trials, and weigh every suspected cause.",
    "minimize": "Shrink the failing case while the same failure stays: sizes, options, type, inputs.",
    "kernels": "Show the code that Triton generated for the test, and compare it between two cells.",
    "factors": "Vary environment variables one at a time: which of them changes the failure rate?",
    "report": "Write what a maintainer can act on: the issue text, an HTML page, the evidence.",
    "verify-fix": "Say whether a patch or a revision fixes the failure, and how many clean runs show it.",
    "check-commit": "Say by exit code whether a commit is good or bad: a step of `git bisect run`.",
    "status": "Show what the ledger holds, and what a run left behind.",
    "clean": "Remove what the kit left on this machine: containers, images, caches; results if asked.",
    "export": "Write rates as CSV or JUnit's XML, or the cells as jobs of a GitHub workflow.",
    "merge": "Join other people's ledgers to this one; nothing is counted twice.",
}
"""Every subcommand with its one line of help; `repro.cli.NAME` holds its code."""


def load(command: str) -> click.Command:
    """A subcommand, from its module."""
    name = command.replace("-", "_")
    found = getattr(importlib.import_module(f"repro.cli.{name}"), name)
    assert isinstance(found, click.Command)
    return found


class _Commands(click.Group):
    """A group that imports a subcommand's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="repro")
def cli() -> None:
    """Where, since when and why a GPU kernel's test fails now and then."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    Raises:
        ReproError, click.ClickException, KeyboardInterrupt: as they come; `main` turns them into text.
    """
    result = cli.main(args=list(arguments), prog_name="repro", standalone_mode=False)
    return int(result or ExitCode.DONE)


def main() -> None:
    """The console script: catch, print, exit. To be asked to end is the same as Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)  # not by way of SIGINT, which jobs in the background ignore
    try:
        status = _guarded(sys.argv[1:])
    except KeyboardInterrupt:  # before anything was begun, or while its end was told
        status = ExitCode.INTERRUPTED
    sys.exit(status)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _guarded(arguments: Sequence[str]) -> int:
    from repro import ui

    try:
        return run(arguments)
    except ReproError as error:
        return _told(error, arguments)
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (KeyboardInterrupt, click.Abort):
        ui.say("interrupted; everything that had finished is kept, and the same command goes on from there")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return ui.close_broken_pipe()
    except OSError as error:
        known = _explained(error)
        if known is None:
            return _bug(arguments)
        return _told(known, arguments)
    except Exception:
        return _bug(arguments)


def _told(error: ReproError, arguments: Sequence[str]) -> int:
    """Print an error, with a next step that fits the command line; the exit code."""
    from repro import ui
    from repro.cli import steps

    if arguments and arguments[0] in COMMANDS:
        steps.tell(error, steps.context_of(arguments))
    else:
        ui.print_error(error)
    return error.exit_code


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NOT_OURS = (errno.EROFS, errno.EACCES, errno.EPERM)


def _explained(error: OSError) -> ReproError | None:
    """What a failing call of the system means, where the machine is to blame and not the kit."""
    place = f" {error.filename}" if error.filename else ""
    if error.errno in _NO_ROOM:
        return NotReadyError(
            f"the disk is full{f' at{place}' if place else ''}",
            why="copies of the code, caches and images take room beside the results",
            next_step="make room (`repro clean` removes what can be made again), then the same command: it"
            " goes on where it stopped",
        )
    if error.errno in _NOT_OURS:
        return NotReadyError(
            f"the system refuses{place or ' a file'}: {error.strerror}",
            why="it is read-only, or belongs to another user",
            next_step=f"look at `ls -ld{place}`, or take another folder for the results: --state DIR",
        )
    return None


def _bug(arguments: Sequence[str]) -> int:
    from repro import ui

    ui.print_bug(arguments)
    return ExitCode.BUG
