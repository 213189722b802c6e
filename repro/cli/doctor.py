"""`repro doctor`: what this machine has and lacks."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import click

from repro import ui
from repro.cells import Cell
from repro.cli.options import Place, json_option, workspace_options
from repro.cli.steps import completed
from repro.cli.workspace import Workspace
from repro.doctor import checks
from repro.engines.base import Check, CheckState
from repro.errors import ExitCode, NotReadyError


@click.command()
@workspace_options
@json_option
def doctor(
    place: Place,
    as_json: bool,
) -> int:
    """Check this machine: engine, GPU, disk, network, compilers; each with evidence and the fix.

    Exits with 3 when something blocks the cells of the matrix.
    """
    workspace = place.open()
    present = _present(workspace)
    found = checks(
        state=workspace.state, engine=place.engine, gpu=workspace.gpu, cells=workspace.cells, present=present
    )
    found = [replace(check, fix=completed(check.fix)) for check in found]
    blocked = [check for check in found if check.state is CheckState.FAIL]
    if as_json:
        click.echo(json.dumps({"ready": not blocked, "checks": [asdict(check) for check in found]}, indent=2))
    else:
        _print(workspace, found)
    return ExitCode.NOT_READY if blocked else ExitCode.DONE


def _present(workspace: Workspace) -> list[Cell]:
    """Cells that need no build; none where the engine does not answer, which a check will say."""
    try:
        engine = workspace.engine()
    except NotReadyError:
        return []
    return [cell for cell in workspace.cells if engine.present(cell, workspace.matrix.subject.requirements)]


def _print(workspace: Workspace, found: list[Check]) -> None:
    rows = [(check.name, check.state.value, check.evidence, check.fix) for check in found]
    title = f"profile {workspace.profile.name}, {ui.count(len(workspace.cells), 'cell')}"
    ui.print_table(("check", "state", "seen", "fix"), rows, title=title)
    blocked = [check.name for check in found if check.state is CheckState.FAIL]
    ready = f"ready; next: {completed('repro matrix')}"
    click.echo(f"blocked by {', '.join(blocked)}" if blocked else ready)
