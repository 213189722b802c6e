"""`repro replay`: failing inputs, run again."""

from __future__ import annotations

import json
import time

import click

from repro import ui
from repro.cli.options import Place, json_option, subject_options, workspace_options
from repro.cli.workspace import only_run, open_runner
from repro.failing import failing_cells, none_failing
from repro.replaying import Again, Replayed, Replaying, to_json
from repro.run import build_threads

COLUMNS: tuple[str, ...] = ("cell", "seed>", "one process>", "fresh processes>", "sets of elements>")
FRESH = COLUMNS.index("fresh processes>")


@click.command()
@click.option("--seed", "seeds", type=int, multiple=True, help="Whose failing inputs; repeatable.")
@click.option(
    "--times",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Runs of each input in one process.",
)
@click.option(
    "--fresh",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Further runs of each input, in a process each.",
)
@workspace_options
@subject_options
@json_option
def replay(
    place: Place,
    seeds: tuple[int, ...],
    times: int,
    fresh: int,
    subject: str | None,
    test: str | None,
    test_file: str | None,
    as_json: bool,
) -> None:
    """Run failing inputs again, bit for bit: is the failure a function of them, and in which cells?"""
    workspace = place.open()
    workspace.check_gpu()
    tested = workspace.subject(subject, test, test_file)
    with only_run(workspace.state), open_runner(workspace, ui.say) as runner, build_threads(2) as pool:
        gpu = workspace.first_gpu()
        failing = failing_cells(runner, tested, workspace.cells, gpu=gpu)
        if not failing:
            raise none_failing(tested, "inputs are kept of trials that fail")
        replaying = Replaying(
            runner=runner,
            subject=tested,
            gpu=gpu,
            times=times,
            fresh=fresh,
            clock=time.monotonic,
        )
        found = replaying.run(workspace.cells, failing[0][0], seeds, pool)
    if as_json:
        click.echo(json.dumps(to_json(found), indent=2))
    else:
        _print(found)


def _print(found: Replayed) -> None:
    told = [COLUMNS, *map(_row, found.rows)]
    if not any(row.fresh for row in found.rows):  # none was asked for
        told = [(*row[:FRESH], *row[FRESH + 1 :]) for row in told]
    ui.print_table(told[0], told[1:], title="failed/run of each failing input")
    for cell, why in found.broken:
        click.echo(f"{cell.id}: cannot be replayed here: {why}")
    click.echo(found.said)


def _row(row: Again) -> tuple[str, ...]:
    fresh = row.fresh or (0, 0)
    return (
        ui.cell_name(row.cell) + (" (from here)" if row.own else ""),
        str(row.seed),
        f"{row.same[0]}/{row.same[1]}",
        f"{fresh[0]}/{fresh[1]}",
        str(len(row.places)) if row.failed else "-",
    )
