"""`repro status`: what the ledger holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from repro import ui
from repro.cli.options import json_option, shared_option
from repro.cli.steps import completed
from repro.cli.workspace import is_held
from repro.errors import UsageError
from repro.stats import CONFIDENCE, Method, Rate, anytime
from repro.store import Ledger, Tally

COLUMNS = (
    "cell", "revision", "test", "mode", "gpu", "failed/trials>", "interval", "other outcomes",
    "failing seeds",
)  # fmt: skip


@click.command()
@shared_option(
    "--state", type=click.Path(path_type=Path, file_okay=False), default=Path(".repro"), show_default=True,
    help="Folder of the ledger.",
)  # fmt: skip
@json_option
def status(state: Path, as_json: bool) -> None:
    """Show what the ledger holds, series by series, with the seeds that failed."""
    path = state / "ledger.sqlite"
    if not path.exists() and not (state / "blocks").exists():
        raise UsageError(f"there is no ledger in {state}", next_step="repro matrix")
    with Ledger.open(path) as ledger:
        ledger.catch_up()
        rows = [(tally, ledger.failing_seeds(tally.series)) for tally in ledger.tallies()]
    commits = _commits(state)
    if as_json:
        click.echo(json.dumps([_as_json(tally, seeds, commits) for tally, seeds in rows], indent=2))
        return
    ui.print_table(COLUMNS, [_row(tally, seeds, commits) for tally, seeds in rows])
    click.echo(f"intervals of {100 * CONFIDENCE:g} %, {Method.ANYTIME.said}")
    for line in _left_behind(state):
        click.echo(line)


def _commits(state: Path) -> Mapping[str, str]:
    """Commits by the revision of their subject, where a search left any; without one nothing is imported."""
    if not (state / "searches").is_dir():
        return {}
    from repro.bisect.journal import known_commits

    return known_commits(state)


def _left_behind(state: Path) -> list[str]:
    """What killed runs left; nothing while a run goes on, whose own it may be."""
    from repro.cleaning import Kind, dead_containers, folder_items

    if is_held(state):
        return ["a run works here now"]
    parts = [f"{item.about} ({item.count} in {item.name})" for item in folder_items(state, {Kind.LEFTOVER})]
    cleaning = completed("`repro clean`")
    parts += [f"container {name}" for name in dead_containers()]
    return [f"left behind by killed runs: {', '.join(parts)}; {cleaning} removes them"] if parts else []


def _row(tally: Tally, seeds: list[int], commits: Mapping[str, str]) -> tuple[str, ...]:
    series, rate = tally.series, _rate(tally)
    return (
        series.cell,
        ui.one_line(commits.get(series.revision, series.revision[:20]), 60),
        series.test,
        series.mode.value,
        series.gpu or "-",
        f"{tally.failed}/{tally.n}",
        f"{ui.percent(rate.low)} to {ui.percent(rate.high)}" if tally.n else "-",
        ui.outcomes(tally.others),
        " ".join(map(str, seeds[:8])) + (" ..." if len(seeds) > 8 else ""),
    )


def _rate(tally: Tally) -> Rate:
    """With an interval that is right whatever stopped the trials: the ledger does not tell."""
    return anytime(tally.failed, tally.n)


def _as_json(tally: Tally, seeds: list[int], commits: Mapping[str, str]) -> dict[str, object]:
    series = tally.series
    return {
        "cell": series.cell,
        "revision": series.revision,
        "commit": commits.get(series.revision),
        "test": series.test,
        "mode": series.mode.value,
        "gpu": series.gpu or None,
        "rate": _rate(tally).to_json(),
        "interval": _rate(tally).method.value,
        "others": {outcome.value: number for outcome, number in sorted(tally.others.items())},
        "failing_seeds": seeds,
    }
