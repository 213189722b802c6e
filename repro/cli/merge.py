"""`repro merge`: ledgers of several people become one."""

from __future__ import annotations

import json
from pathlib import Path

import click

from repro import ui
from repro.cli.options import json_option, shared_option
from repro.cli.steps import completed
from repro.store import Ledger


@click.command()
@click.argument(
    "others", nargs=-1, required=True, metavar="OTHER...", type=click.Path(path_type=Path),
    help="Another ledger.sqlite, or the .repro folder that holds it; repeatable.",
)  # fmt: skip
@shared_option(
    "--state", type=click.Path(path_type=Path, file_okay=False), default=Path(".repro"), show_default=True,
    help="Folder of the ledger that the others are joined to.",
)  # fmt: skip
@json_option
def merge(others: tuple[Path, ...], state: Path, as_json: bool) -> None:
    """Join other people's ledgers to this one; nothing counts twice."""
    state.mkdir(parents=True, exist_ok=True)
    added: dict[str, int] = {}
    with Ledger.open(state / "ledger.sqlite") as ledger:
        ledger.catch_up()
        for other in others:
            added[str(other)] = ledger.merge(other / "ledger.sqlite" if other.is_dir() else other)
        trials: dict[str, int] = {}
        for tally in ledger.tallies():
            trials[tally.series.gpu] = trials.get(tally.series.gpu, 0) + tally.n
    if as_json:
        click.echo(
            json.dumps({"added": added, "trials": {gpu or "CPU": n for gpu, n in trials.items()}}, indent=2)
        )
        return
    for name, number in added.items():
        click.echo(f"{name}: {ui.count(number, 'new trial')}")
    held = ", ".join(f"{number} on {gpu or 'the CPU'}" for gpu, number in sorted(trials.items()))
    click.echo(f"the ledger now holds {held or 'no trials'}; next: {completed('repro report')}")
