"""`repro factors`: environment variables, varied one at a time."""

from __future__ import annotations

import json
import time

import click

from repro import ui
from repro.cells import Cell, newest_released
from repro.cli.options import DURATION, Place, json_option, subject_options, workspace_options
from repro.cli.workspace import Workspace, only_run, open_runner
from repro.errors import UsageError
from repro.factors import Effect, Factor, Varying, Verdict, known_factors, to_json
from repro.factors.known import Host, chosen
from repro.failing import failing_cells
from repro.run import Runner, Target
from repro.subject import Subject

COLUMNS = ("factor", "without>", "with>", "q>", "numbers differ>", "worst error / tolerance>", "verdict")


@click.command()
@click.option("--vary", "names", multiple=True, metavar="NAME", help="Variables; repeatable. [default: all]")
@click.option(
    "--trials", type=click.IntRange(min=1), default=100, show_default=True, help="Seeds on each side."
)
@click.option("--first-seed", type=click.IntRange(min=0), default=0, show_default=True, help="First seed.")
@click.option("--budget", type=DURATION, default="20m", show_default=True, help="Time for all of it.")
@workspace_options
@subject_options
@json_option
def factors(
    place: Place,
    names: tuple[str, ...],
    trials: int,
    first_seed: int,
    budget: float,
    subject: str | None,
    test: str | None,
    test_file: str | None,
    as_json: bool,
) -> None:
    """Vary environment variables one at a time over the same seeds: which changes the failure rate?"""
    workspace = place.open()
    workspace.check_gpu()
    tested = workspace.subject(subject, test, test_file)
    wanted = _chosen(workspace, names)
    with only_run(workspace.state), open_runner(workspace, ui.say) as runner:
        cell = _cell(workspace, runner, tested)
        seeds = range(first_seed, first_seed + trials)
        varying = _varying(workspace, runner, Target(cell=cell, subject=tested), seeds, budget)
        effects = varying.run(wanted)
    if as_json:
        told = {"cell": cell.id, "test": tested.test, "trials": trials, "factors": to_json(effects)}
        click.echo(json.dumps(told, indent=2))
    else:
        _print(effects, cell, tested)


def _chosen(workspace: Workspace, names: tuple[str, ...]) -> list[Factor]:
    left_out = [excluded.cell for excluded in workspace.expansion.excluded]
    every = known_factors([*workspace.cells, *left_out])
    found = chosen(every, names)
    if not found:
        listed = ", ".join(dict.fromkeys(factor.env[0][0] for factor in every))
        raise UsageError(f"no factor is called {names[0]}", next_step=f"take some of {listed}")
    return found


def _varying(workspace: Workspace, runner: Runner, target: Target, seeds: range, budget: float) -> Varying:
    return Varying(
        runner=runner,
        target=target,
        prepared=runner.prepare(target),
        gpu=workspace.first_gpu(),
        host=Host(gpus=len(workspace.gpus()), engine=runner.engine.name),
        seeds=seeds,
        clock=time.monotonic,
        until=time.monotonic() + budget,
        say=ui.say,
    )


def _cell(workspace: Workspace, runner: Runner, subject: Subject) -> Cell:
    """The cell without variables of its own that has the most failures, else the newest one."""
    plain = [cell for cell in workspace.cells if not cell.env] or list(workspace.cells)
    failing = failing_cells(runner, subject, plain, gpu=workspace.first_gpu())
    return failing[0][0] if failing else newest_released(plain)


def _print(effects: list[Effect], cell: Cell, subject: Subject) -> None:
    rows = [_row(effect) for effect in effects if effect.pairs is not None]
    if rows:
        ui.print_table(COLUMNS, rows, title=f"{subject.test} in {cell.id}, the same seeds on both sides")
    for effect in effects:
        if effect.verdict is Verdict.UNTRIED:
            click.echo(f"{effect.factor.name}: not tried: {effect.reason}")
    again = next((effect.again for effect in effects if effect.again is not None), None)
    if again is not None and again.changed:
        click.echo(
            "nothing changed, once more: numbers differ for"
            f" {again.changed} of {ui.count(again.measured, 'seed')}"
        )
    matter = [effect.factor.name for effect in effects if effect.verdict is Verdict.MATTERS]
    click.echo("changes the failure rate: " + (", ".join(matter) or "none of those that were tried"))


def _row(effect: Effect) -> tuple[str, ...]:
    assert effect.pairs is not None
    assert effect.without is not None
    assert effect.with_it is not None
    assert effect.q_value is not None
    pairs = effect.pairs
    worst = " to ".join("-" if one is None else f"{one:.3g}" for one in pairs.worst)
    return (
        effect.factor.name,
        f"{effect.without.failed}/{effect.without.trials}",
        f"{effect.with_it.failed}/{effect.with_it.trials}",
        f"{effect.q_value:.2g}",
        f"{pairs.changed} of {pairs.measured}" if pairs.measured else "-",
        worst,
        effect.verdict.value
        + (f"; {ui.count(pairs.others, 'trial')} ended otherwise" if pairs.others else ""),
    )
