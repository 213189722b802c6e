"""`repro inspect`: one trial looked into, in one cell or two."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from repro import ui
from repro.cells import Cell, select
from repro.cli.options import Place, json_option, subject_options, workspace_options
from repro.cli.workspace import only_run, open_runner
from repro.errors import UsageError
from repro.inspect import tensorboard, words
from repro.inspect.choosing import Choice, choose
from repro.inspect.parting import parting
from repro.inspect.plain import parting_to_json, probe_to_json
from repro.inspect.probing import Wanted, probe
from repro.inspect.records import Probe
from repro.minimize.gradients import CHECKED
from repro.minimize.kept import kept_case
from repro.run import Runner, Target
from repro.subject import Subject
from repro.trial.request import ProbeRequest


@click.command()
@click.option("--seed", type=int, help="Which trial. [default: a failing one whose inputs were kept]")
@click.option("--cell", metavar="GLOB", help="The cell to run it in. [default: where it failed]")
@click.option("--against", metavar="GLOB", help="A second cell, to see where the two part.")
@click.option(
    "--rows",
    type=click.IntRange(min=0),
    default=40,
    show_default=True,
    help="Steps in the table, at most; 0 for all.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=120.0,
    show_default=True,
    help="Time for measuring derivatives; 0 for none.",
)
@click.option("--minimized", is_flag=True, help="The smallest case that `repro minimize` found.")
@click.option("--gradcheck", is_flag=True, help="Hand the compared gradients to torch's gradcheck, too.")
@click.option(
    "--tensorboard",
    "events",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write event files for TensorBoard.",
)
@workspace_options
@subject_options
@json_option
def inspect(
    place: Place,
    seed: int | None,
    cell: str | None,
    against: str | None,
    rows: int,
    seconds: float,
    minimized: bool,
    gradcheck: bool,
    events: Path | None,
    subject: str | None,
    test: str | None,
    test_file: str | None,
    as_json: bool,
) -> None:
    """Look inside a trial: every operation's numbers, which side is wrong, and what the derivative is."""
    if events is not None:
        tensorboard.check()
    workspace = place.open()
    workspace.check_gpu()
    here, there = one_cell(workspace.cells, cell), one_cell(workspace.cells, against)
    tested = workspace.subject(subject, test, test_file)
    gpu = workspace.first_gpu()
    with only_run(workspace.state), open_runner(workspace, ui.say) as runner:
        preferred = list(dict.fromkeys([*([here] if here else []), *workspace.cells]))
        if minimized:
            choice = _smallest(workspace.state, tested, preferred)
        else:
            choice = choose(runner, tested, preferred, seed, gpu)
        wanted = Wanted(
            seed=choice.seed,
            inputs=choice.inputs,
            gpu=gpu,
            case=choice.case,
            options=ProbeRequest(
                seconds=seconds,
                derivatives=seconds > 0,
                gradcheck=CHECKED if gradcheck or minimized else 0,
            ),
        )
        cells = list(dict.fromkeys([here or choice.cell, *([there] if there else [])]))
        found = {each: _probe(runner, tested, each, wanted) for each in cells}
    for each in cells if events else ():
        ui.say(f"event files: {ui.display_path(tensorboard.write(found[each], events or Path(), each.id))}")
    if as_json:
        click.echo(json.dumps(_to_json(choice, found), indent=2))
    else:
        _print(choice, found, rows)


def _smallest(state: Path, subject: Subject, cells: Sequence[Cell]) -> Choice:
    """The smallest case that was found, in the cell that it fails in, or else in the first."""
    kept = kept_case(state, subject)
    cell = next((each for each in cells if each.id == kept.cell), cells[0])
    return Choice(cell=cell, seed=kept.seed, inputs=kept.inputs, case=kept.request)


def one_cell(cells: Sequence[Cell], glob: str | None) -> Cell | None:
    """The one cell that a glob means; None without one.

    Raises:
        UsageError: it means none, or several.
    """
    if glob is None:
        return None
    found = select(cells, [glob])
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"{ui.count(len(found), 'cell')} match `{glob}`",
        why="a trial is looked into in one cell at a time",
        next_step="name one of " + ", ".join(each.id for each in found[:4]),
    )


def _probe(runner: Runner, subject: Subject, cell: Cell, wanted: Wanted) -> Probe:
    target = Target(cell=cell, subject=subject)
    prepared = runner.prepare(target)
    ui.say(f"{cell.id}: looking into {_name(wanted.seed, by_inputs=wanted.inputs is not None)}")
    return probe(runner, target, prepared, wanted)


def _name(seed: int, *, by_inputs: bool) -> str:
    return f"the kept inputs of seed {seed}" if by_inputs else f"seed {seed}"


def _to_json(choice: Choice, found: dict[Cell, Probe]) -> dict[str, object]:
    cells, probes = list(found), list(found.values())
    parted = parting_to_json(parting(probes[0].steps, probes[1].steps)) if len(probes) > 1 else None
    return {
        "seed": choice.seed,
        "kept_inputs": choice.inputs is not None and choice.inputs.file is not None,
        "cells": [{"cell": cell.id, **probe_to_json(found[cell])} for cell in cells],
        "parting": parted,
    }


def _print(choice: Choice, found: dict[Cell, Probe], rows: int) -> None:
    for cell, seen in found.items():
        outcome = seen.end.outcome if seen.end else "died"
        title = f"{ui.cell_name(cell)}: {_name(choice.seed, by_inputs=choice.inputs is not None)}, {outcome}"
        if seen.steps:
            ui.print_table(words.STEPS, words.step_rows(seen, rows), title=title)
        else:
            click.echo(title)
        if seen.precisions:
            ui.print_table(words.PRECISIONS, words.precision_rows(seen.precisions), title="against float64")
        if derivatives := words.derivative_rows(seen.derivatives):
            ui.print_table(words.DERIVATIVES, derivatives, title="against difference quotients")
        for sentence in words.sentences(seen):
            click.echo(f"- {sentence}")
    if len(found) > 1:
        (here, one), (there, other) = found.items()
        for sentence in words.parting_sentences(parting(one.steps, other.steps), here.id, there.id):
            click.echo(f"- {sentence}")
