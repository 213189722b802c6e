"""`repro build`: make the cells, run nothing."""

from __future__ import annotations

import click

from repro import ui
from repro.cells import Cell
from repro.cli.options import Place, subject_options, workspace_options
from repro.cli.steps import tell
from repro.cli.workspace import make_runner, only_run
from repro.errors import BuildError, ExitCode
from repro.matrix import BUILDERS
from repro.run import Target, build_threads


@click.command()
@workspace_options
@subject_options
def build(
    place: Place,
    subject: str | None,
    test: str | None,
    test_file: str | None,
) -> int:
    """Build the images or environments of the cells, and run nothing."""
    context, workspace = click.get_current_context(), place.open()
    tested = workspace.subject(subject, test, test_file)
    with only_run(workspace.state), workspace.ledger() as ledger:
        runner = make_runner(workspace, ledger, ui.say)

        def make(cell: Cell) -> tuple[str, str]:
            try:
                prepared = runner.prepare(Target(cell=cell, subject=tested))
            except BuildError as error:
                tell(error, context)
                return "failed", error.what
            return ("built" if prepared.built else "present"), ui.duration(prepared.seconds)

        with build_threads(BUILDERS) as pool:
            made = list(pool.map(make, workspace.cells))
    rows = [(ui.cell_name(cell), *result) for cell, result in zip(workspace.cells, made, strict=True)]
    ui.print_table(("cell", "image", "time or cause"), rows)
    return ExitCode.BUILD_FAILED if any(result == "failed" for result, _ in made) else ExitCode.DONE
