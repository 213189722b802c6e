"""`repro debug`: pdb inside the cell, in a failing trial."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from repro import ui
from repro.cli.inspect import one_cell
from repro.cli.options import Place, subject_options, workspace_options
from repro.cli.workspace import only_run, open_runner
from repro.errors import NotReproducedError, UsageError
from repro.inspect.choosing import Choice, choose
from repro.inspect.looking import look
from repro.run import Ran, Runner, Target
from repro.store.sound import read_sound_events
from repro.trial.plain import read_plain
from repro.trial.records import Event, Outcome


@click.command()
@click.option("--seed", type=int, help="Which trial. [default: a failing one whose inputs were kept]")
@click.option("--cell", metavar="GLOB", help="The cell to run it in. [default: where it failed]")
@click.option(
    "--commands",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Give pdb the lines of this file, and print what it answers. [default: stdin, unless a terminal]",
)
@workspace_options
@subject_options
def debug(
    place: Place,
    seed: int | None,
    cell: str | None,
    commands: Path | None,
    subject: str | None,
    test: str | None,
    test_file: str | None,
) -> None:
    """Stop a failing trial in pdb: inside the cell, at the assertion, tensors at hand."""
    given = _commands(commands)
    workspace = place.open()
    workspace.check_gpu()
    here = one_cell(workspace.cells, cell)
    tested = workspace.subject(subject, test, test_file)
    gpu = workspace.first_gpu()
    with only_run(workspace.state), open_runner(workspace, ui.say) as runner:
        preferred = [*([here] if here else []), *workspace.cells]
        choice = choose(runner, tested, list(dict.fromkeys(preferred)), seed, gpu)
        target = Target(cell=here or choice.cell, subject=tested)
        ui.say(
            f"{target.cell.id}: seed {choice.seed}; `h` lists pdb's commands, `down` leads to the exception"
        )
        ran = _debug(runner, target, choice, given, gpu)
    _finish(ran, target, choice)


def _commands(file: Path | None) -> list[str]:
    """What pdb is given: a file's lines, else what is piped in; nothing where a person types.

    Raises:
        UsageError: nobody can type, or there are no commands.
    """
    if file is None and sys.stdin.isatty() and sys.stdout.isatty():
        return []
    if file is not None:
        text = file.read_text(encoding="utf-8")
    else:
        text = "" if sys.stdin.isatty() else sys.stdin.read()
    lines = [line for line in text.splitlines() if line.strip()]
    if lines:
        return lines
    if file is not None:
        raise UsageError(
            f"{file} holds no commands", next_step="write pdb's commands into it, such as `pp locals()`"
        )
    raise UsageError(
        "a debugger needs a terminal, and stdin or stdout is none",
        why="pdb reads its commands from the user",
        next_step="run it in a terminal; or pipe pdb's commands into it, or name a file: --commands FILE",
    )


def _debug(runner: Runner, target: Target, choice: Choice, commands: list[str], gpu: int | None) -> Ran:
    patient = dataclasses.replace(
        runner, limits=dataclasses.replace(runner.limits, trial_timeout=math.inf, startup_timeout=math.inf)
    )
    extra = {"debug": commands}
    order = look(choice.seed, choice.inputs, gpu=gpu, extra=extra, terminal=not commands)
    with _terminal_for_child() if order.terminal else contextlib.nullcontext():
        return patient.run(target, runner.prepare(target), order)


@contextlib.contextmanager
def _terminal_for_child() -> Iterator[None]:
    """Ctrl-C is pdb's. A handler, since a child would inherit a signal that is ignored."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _finish(ran: Ran, target: Target, choice: Choice) -> None:
    """Print what pdb answered to commands from a file.

    Raises:
        NotReadyError: the engine failed.
        NotReproducedError: the trial passed, or never came to its end.
    """
    ran.require(f"the debugger could not run in {target.cell.id}")
    folder = ran.folders[-1]
    click.echo(ui.shown(read_plain(folder / "debug.txt").decode("utf-8", "replace")), nl=False)
    ends = [event for event in read_sound_events(folder / "records.jsonl") if event["event"] == Event.END]
    if ends and ends[-1]["outcome"] not in (Outcome.PASSED, Outcome.SKIPPED):
        return
    came = f"it came to {ends[-1]['outcome']}" if ends else ran.gave_up or "it did not run"
    raise NotReproducedError(
        f"seed {choice.seed} did not fail in {target.cell.id}: {came}",
        why="a debugger stops where a trial fails",
        next_step="repro status, which lists the seeds that failed, and in which cells",
    )
