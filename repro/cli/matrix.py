"""`repro matrix`: the main job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import click

from repro import ui
from repro.advice import gist, next_step
from repro.board import COLUMNS, Board, open_board, row
from repro.cli.options import Place, json_option, subject_options, trial_options, workspace_options
from repro.cli.steps import completed
from repro.cli.workspace import Workspace, make_runner, only_run
from repro.engines import describe
from repro.errors import ExitCode
from repro.matrix import CellResult, Goal, MatrixRun, Phase
from repro.seeded import own_seeds
from repro.stats import Stopping
from repro.store import Ledger, Trial, set_aside
from repro.subject import Subject
from repro.trial.records import Mode, Outcome

_LOOKED_AT = 20
"""Trials of an outcome among which an example is chosen."""


@click.command()
@workspace_options
@subject_options
@trial_options
@json_option
def matrix(
    place: Place,
    subject: str | None,
    test: str | None,
    test_file: str | None,
    trials: int | None,
    half_width: float | None,
    mode: str,
    first_seed: int,
    jobs: int | None,
    fresh: bool,
    as_json: bool,
) -> int:
    """Run the target test over many seeds in every cell; end with a table of failure rates.

    Goes on where an earlier run stopped. One broken cell never stops the others.
    """
    workspace = place.open()
    workspace.check_gpu()
    tested = workspace.subject(subject, test, test_file)
    goal = _goal(workspace, trials, half_width, Mode(mode), first_seed)
    with only_run(workspace.state):
        if fresh:
            _set_aside(workspace, tested, goal.mode)
        with workspace.ledger() as ledger, open_board(workspace.cells) as board:
            results = _run(workspace, tested, goal, ledger, board, jobs)
            answer = _answer(workspace, tested, goal, results, ledger)
    if as_json:
        click.echo(json.dumps(_as_json(workspace, answer), indent=2))
    else:
        _print(workspace, answer)
    return _exit_code(results)


def _goal(
    workspace: Workspace, trials: int | None, half_width: float | None, mode: Mode, first_seed: int
) -> Goal:
    asked = workspace.profile.trials
    width = asked.half_width if half_width is None else half_width or None
    stopping = Stopping(most=trials or asked.count, half_width=width, confidence=asked.confidence)
    return Goal(stopping=stopping, mode=mode, first_seed=first_seed, block=asked.block)


def _set_aside(workspace: Workspace, subject: Subject, mode: Mode) -> None:
    cells = {cell.id for cell in workspace.cells}
    path = workspace.state / "ledger.sqlite"
    home = set_aside(path, cells=cells, revision=subject.revision, test=subject.test, mode=mode)
    if home is not None:
        ui.say(f"earlier trials are set aside in {ui.display_path(home)}")


def _run(
    workspace: Workspace, subject: Subject, goal: Goal, ledger: Ledger, board: Board, jobs: int | None
) -> list[CellResult]:
    runner = make_runner(workspace, ledger, board.say)
    ui.say(f"{subject.test} of {subject.origin} at {subject.revision[:20]}; {describe(runner.engine)}")
    run = MatrixRun(
        runner=runner,
        subject=subject,
        goal=goal,
        report=board,
        gpus=workspace.gpus(),
        jobs=jobs or workspace.workers(),
    )
    return run.run(workspace.cells)


# Results ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """What a run came to, and what to say of it.

    Args:
        subject: code and test that ran.
        goal: what was wanted of each cell.
        results: of each cell.
        notes: sentences on cells that are broken, on other outcomes, on the test's own seeds.
        step: what to do next.
    """

    subject: Subject
    goal: Goal
    results: Sequence[CellResult]
    notes: Sequence[str]
    step: str


def _answer(
    workspace: Workspace, subject: Subject, goal: Goal, results: Sequence[CellResult], ledger: Ledger
) -> _Answer:
    examples = {each.cell.id: _examples(each, ledger, subject, goal.mode) for each in results}
    notes = [note for result in results for note in _notes(result, examples[result.cell.id])]
    notes += _own_seeds(workspace, subject, ledger) if goal.mode is Mode.SEEDS else []
    told = {cell: "\n".join(trial.message for trial in trials) for cell, trials in examples.items()}
    unbegun = {cell for cell, trials in examples.items() if any(map(_never_began, trials))}
    logs = ui.display_path(workspace.state / "logs")
    step = completed(next_step(results, told, engine=workspace.engine_name, logs=logs, unbegun=unbegun))
    return _Answer(subject=subject, goal=goal, results=results, notes=notes, step=step)


def _print(workspace: Workspace, answer: _Answer) -> None:
    shown = [index for index, column in enumerate(COLUMNS) if column != "left>"]
    rows = [[row(result)[index] for index in shown] for result in answer.results]
    title = _title(answer.subject, answer.goal)
    ui.print_table([COLUMNS[index] for index in shown], rows, title=title)
    if workspace.expansion.excluded:
        left_out = [(each.cell.id, each.reason) for each in workspace.expansion.excluded]
        ui.print_table(("left out", "why"), left_out)
    for note in (*answer.notes, *_legend(answer.results)):
        click.echo(note)
    click.echo(f"next: {answer.step}")


def _title(subject: Subject, goal: Goal) -> str:
    stopping = goal.stopping
    title = f"{subject.test}, mode {goal.mode.value}, at most {ui.count(stopping.most, 'trial')} a cell"
    if stopping.half_width is not None:
        title += f", fewer once within ±{ui.percent(stopping.half_width)}"
    method = stopping.rate(failed=0, passed=0).method
    return f"{title}; intervals of {100 * stopping.confidence:g} %, {method.said}"


def _notes(result: CellResult, examples: Sequence[Trial]) -> list[str]:
    """Why a cell is broken, and one example of each outcome that enters no rate."""
    cell = result.cell.id
    notes = [f"{cell}: {result.note}"] if result.phase is Phase.BROKEN and result.note else []
    for trial in examples:
        notes.append(f"{cell}: {trial.outcome.value}, such as seed {trial.seed}: {gist(trial.message)}")
    return notes


def _examples(result: CellResult, ledger: Ledger, subject: Subject, mode: Mode) -> list[Trial]:
    """One trial of each outcome that enters no rate."""
    cell, revision, test = result.cell.id, subject.revision, subject.test
    found = (
        ledger.trials(cell=cell, revision=revision, test=test, mode=mode, outcomes=[outcome])
        for outcome in sorted(result.others)
    )
    return [trial for trials in found if (trial := _telling(trials)) is not None]


def _telling(trials: Iterable[Trial]) -> Trial | None:
    """A trial that ran, where there is one: before it, the cell may have lacked what the test needs."""
    first = list(islice(trials, _LOOKED_AT))
    return next((trial for trial in first if not _never_began(trial)), first[0] if first else None)


def _never_began(trial: Trial) -> bool:
    """Whether the test could not even be collected, for another reason than that it is missing."""
    return trial.outcome is Outcome.FAILED_OTHERWISE and trial.seconds is None


def _own_seeds(workspace: Workspace, subject: Subject, ledger: Ledger) -> list[str]:
    """What the first cell shows: the test is the same in all of them."""
    about = {"revision": subject.revision, "test": subject.test}
    told = (own_seeds(ledger, workspace.state, cell=cell.id, **about) for cell in workspace.cells)
    return list(islice(filter(None, told), 1))


def _legend(results: Sequence[CellResult]) -> list[str]:
    """What a reader of the table must know."""
    legend = []
    if any(result.cell.crossed for result in results):
        legend.append(
            "× a crossed cell: its Triton or ptxas is not the one that this torch was released with"
        )
    if any(not result.cell.on_gpu for result in results):
        legend.append(
            "cpu cells ran without a GPU, kernels under Triton's interpreter:"
            " their rates say nothing about a GPU"
        )
    return legend


def _as_json(workspace: Workspace, answer: _Answer) -> dict[str, object]:
    subject = answer.subject
    return {
        "profile": workspace.profile.name,
        "subject": {"origin": subject.origin, "revision": subject.revision, "test": subject.test},
        "mode": answer.goal.mode.value,
        "cells": [_cell_json(result) for result in answer.results],
        "excluded": [{"id": each.cell.id, "reason": each.reason} for each in workspace.expansion.excluded],
        "notes": list(answer.notes),
        "next": answer.step,
    }


def _cell_json(result: CellResult) -> dict[str, object]:
    return {
        "id": result.cell.id,
        "crossed": result.cell.crossed,
        "gpu": result.gpu or None,
        "state": result.phase.value,
        "rate": result.rate.to_json(),
        "interval": result.rate.method.value,
        "others": {outcome.value: count for outcome, count in sorted(result.others.items())},
        "note": result.note,
        "seconds": round(result.seconds, 2),
    }


def _exit_code(results: Sequence[CellResult]) -> int:
    """Done, unless no cell could be tried at all."""
    if all(result.phase is Phase.BROKEN for result in results):
        return ExitCode.BUILD_FAILED
    return ExitCode.DONE
