"""`repro verify-fix`: whether a patch or another revision fixes the failure."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

import click

from repro import ui
from repro.cells import Cell
from repro.cli.options import DURATION, Place, json_option, subject_options, workspace_options
from repro.cli.workspace import Workspace, only_run, open_runner
from repro.config import SubjectSpec
from repro.errors import ExitCode, UsageError
from repro.failing import failing_cells, none_failing
from repro.run import Runner, Target
from repro.store import Tally
from repro.subject import Subject, override
from repro.subject.patching import Changes, changes, patched
from repro.verify import Pace, Side, Verified, Verifying, asked, claim_of, sentences, to_json


@dataclass(frozen=True, kw_only=True)
class Fix:
    """What is compared with the subject as it is.

    Args:
        subject: the fixed one.
        changed: files in which it differs.
    """

    subject: Subject
    changed: Changes


@click.command("verify-fix")
@click.option(
    "--patch",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A unified diff, applied to a copy of the subject.",
)
@click.option("--ref", metavar="REV", help="Another revision of the subject's repository.")
@click.option(
    "--confidence",
    type=click.FloatRange(min=0.5, max=0.9999),
    default=0.95,
    show_default=True,
    help="With which a failure as rare as the known rate allows would have been seen.",
)
@click.option(
    "--times",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="Runs of each failing input, on each side.",
)
@click.option("--trials", type=click.IntRange(min=1), help="Seeds of the fixed side, at most.")
@click.option("--budget", type=DURATION, help="Stop after this time, such as 20m, with what is known then.")
@click.option(
    "--passes-too", is_flag=True, help="Run the other tests of the file, too: does the fix break any?"
)
@workspace_options
@subject_options
@json_option
def verify_fix(
    place: Place,
    patch: Path | None,
    ref: str | None,
    confidence: float,
    times: int,
    trials: int | None,
    budget: float | None,
    passes_too: bool,
    subject: str | None,
    test: str | None,
    test_file: str | None,
    as_json: bool,
) -> int:
    """Say whether a patch or another revision fixes the failure, and with how many clean runs.

    The subject as it is has to have failures in the ledger: `repro matrix` makes them.
    """
    if (patch is None) == (ref is None):
        raise UsageError("name the fix: --patch FILE or --ref REV, one of them")
    workspace = place.open()
    workspace.check_gpu()
    spec = override(workspace.matrix.subject, location=subject, test=test)
    as_is = workspace.resolved(spec, test_file)
    fix = _fix(workspace, spec, as_is, patch, ref, test_file)
    pace = Pace(times=times, block=workspace.profile.trials.block, budget=budget, most=trials)
    with only_run(workspace.state), open_runner(workspace, ui.say) as runner:
        verifying = _verifying(workspace, runner, as_is, fix, confidence, pace)
        verifying.passes_too = passes_too
        ui.say(asked(verifying.claim))
        found = verifying.run()
        click.echo(json.dumps(to_json(found), indent=2) if as_json else _text(found))
    return ExitCode.DONE if found.shown else ExitCode.INCONCLUSIVE


def _fix(
    workspace: Workspace,
    spec: SubjectSpec,
    as_is: Subject,
    patch: Path | None,
    ref: str | None,
    test_file: str | None,
) -> Fix:
    """The fixed side, copied.

    Raises:
        UsageError: the patch does not fit, or both sides are the same.
    """
    if patch is not None:
        fixed = patched(as_is, patch, state=workspace.state, files=spec.files)
    else:
        fixed = workspace.resolved(replace(spec, rev=ref), test_file)
    changed = changes(as_is, fixed.root)
    if not changed.any:
        raise UsageError(
            f"`{ref}` is the subject as it is",
            why="no file of it differs",
            next_step="name the revision that fixes it, or the failing one: --subject PATH@REV",
        )
    return Fix(subject=fixed, changed=changed)


def _verifying(
    workspace: Workspace, runner: Runner, as_is: Subject, fix: Fix, confidence: float, pace: Pace
) -> Verifying:
    cell, tally = _known(workspace, runner, as_is)
    sides = []
    for subject in (as_is, fix.subject):
        target = Target(cell=cell, subject=subject)
        prepared = runner.prepare(target)
        sides.append(Side(runner=runner, target=target, prepared=prepared, gpu=workspace.first_gpu()))
    return Verifying(
        runner=runner,
        as_is=sides[0],
        fixed=sides[1],
        changed=fix.changed,
        claim=claim_of(tally.failed, tally.passed, confidence),
        pace=pace,
        clock=time.monotonic,
        say=ui.say,
    )


def _known(workspace: Workspace, runner: Runner, subject: Subject) -> tuple[Cell, Tally]:
    """The cell with the most failures of the subject as it is, and what the ledger holds of it.

    Raises:
        NotReproducedError: none has any.
    """
    failing = failing_cells(runner, subject, workspace.cells, gpu=workspace.first_gpu())
    if not failing:
        raise none_failing(subject, "a fix is held against the failures of the subject as it is")
    return failing[0]


def _text(found: Verified) -> str:
    cell, test = found.as_is.target.cell, found.as_is.target.subject.test
    return "\n".join([*sentences(found), f"cell: {ui.cell_name(cell)}; test: {test}"])
