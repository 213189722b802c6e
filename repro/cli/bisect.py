"""`repro bisect`: since which version, since which commit."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import click

from repro import ui
from repro.bisect import (
    AXES,
    Checkout,
    CommitLine,
    Find,
    Investigation,
    Question,
    Result,
    sentences,
    to_json,
    version_line,
)
from repro.cells import newest_released
from repro.cli.options import DURATION, Place, json_option, subject_options, workspace_options
from repro.cli.steps import completed
from repro.cli.workspace import Workspace, only_run, open_runner
from repro.config import SubjectSpec
from repro.engines import describe
from repro.errors import ExitCode, UsageError
from repro.subject import commits_between, open_repository, override, resolve_revision


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of one search, beside those of the workspace."""

    axis: str | None
    repo: str | None
    old: str | None
    new: str | None
    subject: str | None
    test: str | None
    param: str | None
    test_file: str | None
    find: str
    confidence: float
    trials: int | None
    budget: float | None
    replay: bool
    all_parents: bool
    tests_from: str | None
    side_by_side: bool
    test_map: tuple[str, ...]
    fresh: bool


@click.command()
@click.option(
    "--axis",
    type=click.Choice([*AXES, "commit"]),
    help="What to search along. [default: commit with --repo, else release]",
)
@click.option("--repo", metavar="PATH_OR_URL", help="Repository whose commits are searched.")
@click.option("--old", metavar="X", help="Oldest version or commit. [default: the matrix's, or the first]")
@click.option("--new", metavar="X", help="Newest version or commit. [default: the matrix's, or the last]")
@click.option("--param", metavar="ID", help="Parameters of the test, as pytest writes them in brackets.")
@click.option(
    "--find",
    type=click.Choice([find.value for find in Find]),
    default=Find.REGRESSION.value,
    show_default=True,
    help="Where the failure begins, or where it ends.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(min=0.5, max=0.999),
    default=0.95,
    show_default=True,
    help="Probability with which a name must be right.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=3),
    help="Of the end that has to fail, before it counts as not reproduced. [default: the matrix's]",
)
@click.option("--budget", type=DURATION, help="Stop after this time, such as 20m, with what is known then.")
@click.option("--replay/--no-replay", default=True, help="Let inputs that fail every time decide.")
@click.option("--all-parents", is_flag=True, help="Look inside the merge that is found.")
@click.option("--tests-from", metavar="REV", help="Run the tests of one commit against all of them.")
@click.option("--side-by-side", is_flag=True, help="With --tests-from: also with each commit's own tests.")
@click.option(
    "--test-map",
    multiple=True,
    metavar="NAME",
    help="A name that the test had earlier, or FILE.py::NAME; `*` and `?` match; repeatable.",
)
@click.option("--fresh", is_flag=True, help="Leave earlier trials out of account.")
@workspace_options
@subject_options
@json_option
def bisect(
    place: Place,
    as_json: bool,
    **options: Any,
) -> int:
    """Find the version or the commit at which the failure rate changes, although it is a rate.

    \b
    repro bisect --test test_backward                          along releases, then torch, triton, ptxas
    repro bisect --axis triton --old 3.2.0 --new 3.7.1
    repro bisect --repo . --old v1.0 --new main                along commits
    """
    asked = Asked(**options)
    workspace = place.open()
    workspace.check_gpu()
    results = _search(workspace, asked)
    if as_json:
        click.echo(json.dumps(_as_json(results), indent=2))
    else:
        for name, result in results.items():
            click.echo("\n".join([*([f"{name}:"] if len(results) > 1 else []), *sentences(result), ""]))
    code = _exit_code(next(iter(results.values())))
    if not as_json:
        click.echo(f"next: {completed(_NEXT[code])}")
    return code


_NEXT = {
    ExitCode.DONE: "`repro diagnose` says why it fails; `repro report` gathers what to attach to the issue",
    ExitCode.INCONCLUSIVE: "`repro bisect` goes on where this stopped",
    ExitCode.NOT_REPRODUCED: "`repro matrix` shows in which cells it fails, and what else comes of it",
}


def _search(workspace: Workspace, asked: Asked) -> dict[str, Result]:
    """The results, by whose tests ran; the one that was asked for comes first."""
    axis = asked.axis or ("commit" if asked.repo else "release")
    spec = _spec(workspace.matrix.subject, asked, axis)
    with only_run(workspace.state), _investigation(workspace, asked) as investigation:
        if axis == "commit":
            return _commits(workspace, asked, spec, investigation)
        return {"versions": _versions(workspace, asked, axis, spec, investigation)}


def _spec(spec: SubjectSpec, asked: Asked, axis: str) -> SubjectSpec:
    location = asked.repo if axis == "commit" and asked.repo else asked.subject
    moved = override(spec, location=location)
    return override(moved, test=_test(spec, asked))


def _test(spec: SubjectSpec, asked: Asked) -> str | None:
    """The test that was asked for; a bare name that matrix.yaml gives with parameters means those."""
    name = asked.test
    if asked.param is not None:
        bare = (name or spec.test).partition("[")[0]
        return f"{bare}[{asked.param.strip('[]')}]"
    return None if name is not None and name == spec.test.partition("[")[0] else name


def _versions(
    workspace: Workspace, asked: Asked, axis: str, spec: SubjectSpec, investigation: Investigation
) -> Result:
    if workspace.engine_name == "host":
        raise UsageError(
            "the host engine has one version of everything",
            why="versions are searched by making a cell of each",
            next_step="--engine docker or --engine venv; commits can be searched here: --repo PATH",
        )
    subject = workspace.resolved(spec, asked.test_file)
    line = version_line(axis, workspace.cells, subject, old=asked.old, new=asked.new)
    for name, why in line.left_out:
        investigation.say(f"left out: {axis} {name}: {why}")
    about = {
        "subject": subject.revision,
        "cell": line.candidates[-1].cell.id,
        "signature": asdict(spec.signature),
    }
    return investigation.versions(line, about)


def _commits(
    workspace: Workspace, asked: Asked, spec: SubjectSpec, investigation: Investigation
) -> dict[str, Result]:
    repository = open_repository(spec, workspace.state)
    commits = commits_between(repository, asked.old, asked.new)
    if len(commits) < 2:
        raise UsageError(
            "there is one commit to choose from",
            why="a search needs an old and a new one",
            next_step="name an earlier commit: --old REV",
        )
    rev = asked.tests_from and resolve_revision(repository.path, asked.tests_from)
    cell = newest_released(workspace.cells)
    found = {}
    for name, tests_from in _modes(asked, rev):
        checkout = Checkout(
            spec=spec,
            repository=repository,
            state=workspace.state,
            test_file=asked.test_file,
            tests_from=tests_from,
            earlier=asked.test_map,
        )
        line = CommitLine(commits=commits, cell=cell, checkout=checkout)
        about = {
            "origin": repository.origin,
            "cell": cell.id,
            "test_file": asked.test_file or spec.test_file,
            "signature": asdict(spec.signature),
            "tests_from": tests_from,
            "earlier": list(asked.test_map),
        }
        found[name] = investigation.commits(line, about, old=commits[0].id, inside_merges=asked.all_parents)
    return found


def _modes(asked: Asked, rev: str | None) -> Iterator[tuple[str, str | None]]:
    if rev is not None:
        yield f"with the tests of {asked.tests_from}", rev
    if rev is None or asked.side_by_side:
        yield "with each commit's own tests", None


@contextmanager
def _investigation(workspace: Workspace, asked: Asked) -> Iterator[Investigation]:
    with open_runner(workspace, ui.say) as runner:
        ui.say(describe(runner.engine))
        if runner.engine.name != "docker" and (asked.axis == "commit" or asked.repo):
            ui.say("commits run without a container: they can do what you can")
        yield Investigation(
            runner=runner,
            question=_question(workspace, asked),
            gpu=workspace.first_gpu(),
            say=ui.say,
            earlier=asked.test_map,
            fresh=asked.fresh,
            clock=time.monotonic,
        )


def _question(workspace: Workspace, asked: Asked) -> Question:
    return Question(
        find=Find(asked.find),
        confidence=asked.confidence,
        trials=asked.trials or workspace.profile.trials.count,
        budget=asked.budget,
        replay=asked.replay,
    )


# Results ---------------------------------------------------------------------------------------------------


def _as_json(results: Mapping[str, Result]) -> dict[str, Any]:
    """The answer that was asked for; further ones under `beside`."""
    (_, first), *others = results.items()
    return {
        **to_json(first),
        **({"beside": {name: to_json(each) for name, each in others}} if others else {}),
    }


def _exit_code(result: Result) -> ExitCode:
    answer = result.innermost.answer
    if not answer.reproduced or answer.kind == "absent":
        return ExitCode.NOT_REPRODUCED
    return ExitCode.DONE if answer.decided else ExitCode.INCONCLUSIVE
