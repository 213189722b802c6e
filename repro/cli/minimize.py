"""`repro minimize`: the smallest case that still fails."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

import click

from repro import __version__, ui
from repro.cells import Cell, newest_released
from repro.cli.options import DURATION, Place, json_option, subject_options, workspace_options
from repro.cli.workspace import Workspace, only_run, open_runner
from repro.errors import ExitCode
from repro.failing import failing_cells, none_failing
from repro.inspect import words
from repro.minimize import Minimized, Minimizing, Options, to_json
from repro.minimize.blocks import FOLDER, Blocks
from repro.minimize.journal import Journal
from repro.minimize.kept import FILE
from repro.run import Runner, Target
from repro.store import Ledger, Series
from repro.subject import Subject


@click.command()
@click.option("--seed", type=int, help="One that fails. [default: one that the ledger knows]")
@click.option("--budget", type=DURATION, default="10m", show_default=True, help="Time for all of it.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Fresh seeds that each smaller case gets, where the failure replays.",
)
@click.option(
    "--share",
    type=click.FloatRange(min=0.05, max=0.95),
    default=0.5,
    show_default=True,
    help="Of the failure rate that a smaller case must keep, where it does not replay.",
)
@click.option("--fresh", is_flag=True, help="Leave aside what an earlier run of this tried; begin anew.")
@workspace_options
@subject_options
@json_option
def minimize(
    place: Place,
    seed: int | None,
    budget: float,
    seeds: int,
    share: float,
    fresh: bool,
    subject: str | None,
    test: str | None,
    test_file: str | None,
    as_json: bool,
) -> int:
    """Shrink the failing case while the same failure stays: sizes, options, type, and its inputs."""
    workspace = place.open()
    workspace.check_gpu()
    tested = workspace.subject(subject, test, test_file)
    with only_run(workspace.state), open_runner(workspace, ui.say) as runner:
        cell, failing = _source(workspace, runner, tested, seed)
        options = Options(seeds=seeds, share=share)
        blocks = _blocks(workspace, runner, Target(cell=cell, subject=tested), budget)
        blocks.journal = _journal(blocks, {"seed": failing, **asdict(options)}, fresh=fresh)
        found = Minimizing(blocks=blocks, options=options, say=ui.say).run(failing)
    file = workspace.state / FILE
    file.write_text(json.dumps(to_json(found), indent=1), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(to_json(found), indent=2))
    else:
        _print(found, file)
    return ExitCode.DONE if found.again[0] else ExitCode.NOT_REPRODUCED


def _blocks(workspace: Workspace, runner: Runner, target: Target, budget: float) -> Blocks:
    prepared = runner.prepare(target)
    until = time.monotonic() + budget
    return Blocks(
        runner=runner, target=target, prepared=prepared, gpu=workspace.first_gpu(),
        clock=time.monotonic, until=until,
    )  # fmt: skip


def _journal(blocks: Blocks, asked: dict[str, object], *, fresh: bool) -> Journal:
    """What the same search has run already, in the same cell and with the same code."""
    runner, target = blocks.runner, blocks.target
    about = {
        "kit": __version__,
        "engine": runner.engine.name,
        "cell": target.cell.id,
        "digest": blocks.prepared.digest,
        "gpu": runner.gpu_model,
        "revision": target.subject.revision,
        "test": target.subject.test,
        **asked,
    }
    journal = Journal.open(runner.state / FOLDER, about, fresh=fresh)
    if len(journal):
        told = ui.count(len(journal), "step")
        ui.say(f"going on after {told} of an earlier run; --fresh begins anew")
    return journal


def _source(workspace: Workspace, runner: Runner, subject: Subject, seed: int | None) -> tuple[Cell, int]:
    """The cell with the most failures, and a failing seed of it; the newest one for a seed that is named.

    Raises:
        NotReproducedError: none has any, and no seed is named.
    """
    failing = failing_cells(runner, subject, workspace.cells, gpu=workspace.first_gpu())
    if not failing and seed is None:
        raise none_failing(
            subject, "a case is made smaller from a seed that fails", otherwise="name one: --seed N"
        )
    cell = failing[0][0] if failing else newest_released(workspace.cells)
    return cell, _seed(runner.ledger, failing[0][1].series) if seed is None else seed


def _seed(ledger: Ledger, series: Series) -> int:
    """A seed that failed again when its inputs were kept, else any that failed."""
    steady = [kept.seed for kept in ledger.kept_inputs(series) if kept.failed_again]
    return (steady or ledger.failing_seeds(series))[0]


def _print(found: Minimized, file: Path) -> None:
    rows = [(one.label, one.shown(one.value), one.shown(new)) for one, new in found.changes]
    title = f"{found.test} in {found.cell}: {found.key}"
    ui.print_table(("what", "as it was", "smallest"), rows or [("nothing gets smaller", "", "")], title=title)
    for line in _lines(found):
        click.echo(line)
    _print_gradients(found)
    click.echo(f"all of it is in {ui.display_path(file)}")


def _print_gradients(found: Minimized) -> None:
    if found.gradients is None:
        return
    rows = words.derivative_rows(found.gradients.derivatives)
    if rows:
        ui.print_table(words.DERIVATIVES, rows, title="gradients of the smallest case, by differences")
    for sentence in words.gradient_sentences(found.gradients):
        click.echo(f"- {sentence}")


def _lines(found: Minimized) -> list[str]:
    lines = []
    if found.without_effect:
        lines.append("without effect: " + ", ".join(one.label for one in found.without_effect))
    if found.dtypes:
        lines.append("fails with " + _listed(found, True) + "; not with " + (_listed(found, False) or "none"))
    if "left" in found.record:
        lines.append(f"inputs: {found.record['left']} of {found.record['drawn']} numbers drawn are not 0")
        lines += [
            f"  draw {one['draw']} ({one['op']}) {one['index']} = {one['value']:.9g}"
            for one in found.record["elements"][:16]
        ]
    if found.by == "rate" and found.rate:
        lines.append("it does not replay: {} of {} failed at first".format(*found.rate))
    lines.append(
        f"the smallest case, run again: {found.again[0]} of {found.again[1]} failed"
        + ("" if found.complete else "; time was up, and the same command goes on")
    )
    told = f"{ui.count(found.trials, 'trial')} in {found.processes} processes"
    return [*lines, f"{told}, {ui.duration(found.seconds)}"]


def _listed(found: Minimized, fails: bool) -> str:
    return ", ".join(name for name, failed in found.dtypes.items() if failed is fails)
