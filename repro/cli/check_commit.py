"""`repro check-commit`: one step of `git bisect run`."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from repro import ui
from repro.bisect import Checkout, CommitLine
from repro.bisect.check import Answer, Rates, check
from repro.bisect.tryout import Tryout, Untestable
from repro.cells import newest_released
from repro.cli.options import Place, shared_option, workspace_options
from repro.cli.steps import tell
from repro.cli.workspace import Workspace, only_run, open_runner
from repro.errors import ReproError
from repro.run import build_threads
from repro.subject import commits_between, open_repository, override, resolve_revision


class _Aborting(click.Command):
    """A command whose wrong options end a bisection: 2 would tell `git bisect run` that the commit is bad."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """See `click.Command.make_context`."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            error.show()
            raise click.exceptions.Exit(Answer.ABORT) from None


@click.command("check-commit", cls=_Aborting)
@click.option("--repo", default=".", show_default=True, metavar="PATH", help="Repository of the commit.")
@click.option("--rev", default="HEAD", show_default=True, help="The commit.")
@shared_option("--test", metavar="NAME", help="Target test. [default: the matrix's]")
@shared_option("--test-file", metavar="PATH", help="File that holds it. [default: the matrix's]")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=0.1,
    show_default=True,
    help="How often a bad commit fails, at least.",
)
@click.option(
    "--base-rate",
    type=click.FloatRange(min=0, max=1, max_open=True),
    default=0.0,
    show_default=True,
    help="How often a good commit fails, at most.",
)
@click.option(
    "--error",
    type=click.FloatRange(min=0, max=0.5, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    help="Chance of a wrong answer.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="At most; a commit that is still unclear then is skipped.",
)
@workspace_options
def check_commit(
    place: Place,
    **options: Any,
) -> int:
    """Say by exit code whether a commit is good (0) or bad (1); 125 skips it, 128 ends the bisection.

    \b
    git bisect start BAD GOOD
    git bisect run repro check-commit --rate 0.08
    """  # fmt: skip
    try:
        workspace = place.open()
        workspace.check_gpu()
        return _check(workspace, **options)
    except Untestable as untestable:
        ui.say(f"skip: {untestable.finding.outcome.value}: {untestable.finding.message}")
        return Answer.SKIP
    except ReproError as error:
        tell(error)
        return Answer.ABORT
    except ValueError as error:
        ui.say(f"error: {error}")
        return Answer.ABORT
    except Exception:
        ui.print_bug(sys.argv[1:])
        return Answer.ABORT


def _check(
    workspace: Workspace,
    *,
    repo: str,
    rev: str,
    test: str | None,
    test_file: str | None,
    rate: float,
    base_rate: float,
    error: float,
    trials: int,
) -> int:
    rates = Rates(good=base_rate, bad=rate, error=error)
    spec = override(workspace.matrix.subject, location=repo, test=test)
    repository = open_repository(spec, workspace.state)
    commit = resolve_revision(repository.path, rev)
    checkout = Checkout(spec=spec, repository=repository, state=workspace.state, test_file=test_file)
    line = CommitLine(
        commits=commits_between(repository, commit, commit),
        cell=newest_released(workspace.cells),
        checkout=checkout,
        earlier={commit: (checkout.subject(commit).revision, spec.test)},
    )
    with only_run(workspace.state), open_runner(workspace, ui.say) as runner, build_threads(1) as pool:
        tryout = Tryout(runner, line, gpu=workspace.first_gpu(), pool=pool, clock=time.monotonic)
        answer, counts = check(tryout, rates, most=trials)
    said = "unclear, so skipped" if answer is None else answer.name.lower()
    print(f"{line.candidates[0].label}: {said}: {counts.failed} of {counts.rated} failed", file=sys.stdout)
    return Answer.SKIP if answer is None else answer
