"""`repro diagnose`: why a test fails now and then."""

from __future__ import annotations

import json
import time

import click

from repro import ui
from repro.adapting import adapter_of
from repro.cli.options import DURATION, Place, json_option, subject_options, workspace_options
from repro.cli.steps import completed
from repro.cli.workspace import Workspace, only_run, open_runner
from repro.diagnose import Question, sentences, to_json
from repro.diagnose import diagnose as run_experiments
from repro.errors import ExitCode
from repro.failing import failing_cells
from repro.run import Runner, Target
from repro.subject import Subject


@click.command()
@click.option(
    "--budget",
    type=DURATION,
    default="15m",
    show_default=True,
    help="Begin no further experiment after this.",
)
@click.option(
    "--trials", type=click.IntRange(min=1), help="Trials to see it fail in. [default: the matrix's]"
)
@workspace_options
@subject_options
@json_option
def diagnose(
    place: Place,
    budget: float,
    trials: int | None,
    subject: str | None,
    test: str | None,
    test_file: str | None,
    as_json: bool,
) -> int:
    """Work through what an expert would try, and weigh every suspected cause by what it gave."""
    workspace = place.open()
    workspace.check_gpu()
    tested = workspace.subject(subject, test, test_file)
    with only_run(workspace.state), open_runner(workspace, ui.say) as runner:
        question = _question(workspace, runner, tested, trials, budget)
        found = run_experiments(runner, question, clock=time.monotonic, say=ui.say)
    told = to_json(found)
    draft = workspace.state / "diagnosis.part"
    draft.write_text(json.dumps(told, indent=2), encoding="utf-8")
    draft.replace(workspace.state / "diagnosis.json")
    click.echo(json.dumps(told, indent=2) if as_json else completed("\n".join(sentences(found))))
    return ExitCode.DONE if found.supported else ExitCode.INCONCLUSIVE


def _question(
    workspace: Workspace, runner: Runner, tested: Subject, trials: int | None, budget: float
) -> Question:
    gpu = workspace.first_gpu()
    failing = failing_cells(runner, tested, workspace.cells, gpu=gpu)
    cell = failing[0][0] if failing else workspace.cells[0]
    settings, axes = workspace.profile.trials, workspace.profile.axes
    return Question(
        target=Target(cell=cell, subject=tested),
        gpu=gpu if cell.on_gpu else None,
        trials=trials or settings.count,
        block=settings.block,
        budget=budget,
        adapter=adapter_of(workspace.matrix.subject),
        env=sorted({pair for values in axes.env or () for pair in values} - set(cell.env)),
    )
