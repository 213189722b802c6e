"""`repro plan`: what a run would do."""

from __future__ import annotations

import json

import click

from repro import ui
from repro.cli.options import (
    Place,
    json_option,
    subject_options,
    trial_options,
    workspace_options,
)
from repro.cli.steps import completed
from repro.cli.workspace import Workspace
from repro.engines.glance import glance
from repro.plan import Plan, Row
from repro.plan import plan as lay_out
from repro.subject import Subject
from repro.trial.records import Mode


@click.command()
@workspace_options
@subject_options
@trial_options
@json_option
def plan(
    place: Place,
    subject: str | None,
    test: str | None,
    test_file: str | None,
    trials: int | None,
    mode: str,
    as_json: bool,
    **_: object,
) -> None:
    """Show the cells, what is left out and why, and how long a run would take."""
    workspace = place.open()
    tested = workspace.subject(subject, test, test_file)
    drawn = _lay_out(workspace, tested, trials or workspace.profile.trials.count, Mode(mode))
    if as_json:
        click.echo(json.dumps({"profile": workspace.profile.name, **drawn.to_json()}, indent=2))
    else:
        _print(workspace, drawn)


def _lay_out(workspace: Workspace, subject: Subject, trials: int, mode: Mode) -> Plan:
    _, present = glance(workspace.engine_name, state=workspace.state)
    with workspace.ledger() as ledger:
        tallies = ledger.tallies(revision=subject.revision, test=subject.test, mode=mode)
        history = ledger.seconds_per_trial()
    return lay_out(
        workspace.expansion,
        present=lambda cell: present(cell, subject.requirements),
        trials=trials,
        done={tally.series.cell: tally.n for tally in tallies},
        history=history,
        workers=workspace.workers(),
    )


def _print(workspace: Workspace, drawn: Plan) -> None:
    title = f"profile {workspace.profile.name}, {ui.count(len(drawn.rows), 'cell')}"
    ui.print_table(
        ("cell", "image", "trials>", "minutes>", "why"), [_row(row) for row in drawn.rows], title=title
    )
    if drawn.excluded:
        left_out = [(each.cell.id, each.reason) for each in drawn.excluded]
        ui.print_table(("left out", "why"), left_out)
    click.echo(
        f"{drawn.builds} to build, {ui.count(drawn.trials, 'trial')}, about {ui.duration(60 * drawn.minutes)}"
        f" with {ui.count(drawn.workers, 'cell')} at a time; next: {completed('repro matrix')}"
    )


def _row(row: Row) -> tuple[str, ...]:
    done = f"{row.done} of {row.wanted} done" if row.done else str(row.wanted)
    minutes = f"{row.minutes:.1f}" if row.measured else f"~{row.minutes:.1f}"
    name = ui.cell_name(row.cell)
    return name, "present" if row.present else "to build", done, minutes, row.reason
