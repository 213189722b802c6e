"""`repro export`: rates and cells for other programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from repro import ui
from repro.cli.options import Place, workspace_options
from repro.cli.steps import completed
from repro.errors import UsageError
from repro.store import Ledger, Tally

if TYPE_CHECKING:
    from repro.cells import Cell

GITHUB_JOBS = 256
"""Jobs that one matrix of a GitHub workflow may have."""


@click.command()
@click.option(
    "--csv", "form", flag_value="csv", help="A row a series: cell, revision, test, mode, GPU, rate."
)
@click.option("--junit", "form", flag_value="junit", help="JUnit's XML: a case a series.")
@click.option(
    "--github-matrix", "form", flag_value="github", help="The matrix's cells as jobs of a GitHub workflow."
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write. [default: stdout]"
)
@workspace_options
def export(place: Place, form: str | None, out: Path | None) -> None:
    """Write the ledger's rates as CSV or JUnit's XML, or the matrix's cells as jobs of a GitHub workflow."""
    from repro.report.export import to_csv, to_junit

    if form is None:
        raise UsageError("no form was named", next_step="repro export --csv, --junit or --github-matrix")
    if form == "github":
        workspace = place.open()
        text = _github(workspace.cells, workspace.profile.name)
    else:
        text = (to_csv if form == "csv" else to_junit)(_tallies(place.state))
    if out is None:
        click.echo(text, nl=False)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    ui.say(f"wrote {ui.display_path(out)}")


def _tallies(state: Path) -> list[Tally]:
    path = state / "ledger.sqlite"
    if not path.exists() and not (state / "blocks").exists():
        raise UsageError(f"there is no ledger in {state}", next_step="repro matrix")
    with Ledger.open(path) as ledger:
        ledger.catch_up()
        return ledger.tallies()


def _github(cells: Sequence[Cell], profile: str) -> str:
    """For `strategy: {matrix: ${{ fromJSON(...) }}}`: one line, a job a cell."""
    if len(cells) > GITHUB_JOBS:
        ui.say(f"{len(cells)} cells: a workflow's matrix takes {GITHUB_JOBS} jobs; select some with --only")
    jobs = [
        {
            "cell": cell.id,
            "profile": profile,
            "python": cell.python,
            "torch": cell.torch,
            "triton": cell.triton,
            "cuda": cell.cuda,
            "ptxas": cell.ptxas or "bundled",
            "crossed": cell.crossed,
            "command": completed(f"repro matrix --profile {profile} --only '{cell.id}'"),
        }
        for cell in cells
    ]
    return json.dumps({"include": jobs}) + "\n"
