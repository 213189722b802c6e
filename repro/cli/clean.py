"""`repro clean`: what the kit left on this machine, removed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from repro import ui
from repro.cleaning import (
    Item,
    Kind,
    check_folder,
    engine_items,
    folder_items,
    links_in,
    removed,
    run_goes_on,
)
from repro.cli.options import json_option, shared_option
from repro.cli.steps import completed
from repro.cli.workspace import only_run
from repro.engines.client import FAILURES, connect
from repro.engines.local import sweep_local
from repro.errors import ExitCode, NotReadyError

ANSWER_SECONDS = 30
SHARED = (
    "images belong to this machine, not to one results folder: whichever needs one again builds it again;"
    " --no-images leaves them"
)


@click.command()
@shared_option(
    "--state", type=click.Path(path_type=Path, file_okay=False), default=Path(".repro"), show_default=True,
    help="Folder of the ledger.",
)  # fmt: skip
@click.option("--results", is_flag=True, help="Also the ledger, the block files and all other results.")
@click.option(
    "--images/--no-images",
    default=True,
    help="Also containers, images, volumes and networks: those of the whole machine.",
)
@click.option("--dry-run", is_flag=True, help="List what would be removed, with sizes; remove nothing.")
@json_option
def clean(state: Path, results: bool, images: bool, dry_run: bool, as_json: bool) -> int:
    """Remove what the kit made and can make again: containers, images, copies of code, caches, leftovers.

    Files go in one results folder alone. Images belong to the machine: all of the kit's go, whichever folder
    they were built for, unless a run goes on; another folder builds again what it needs. The ledger and the
    block files stay unless --results is given. Only what has the kit's labels and names is touched; links are
    not followed.
    """
    if not state.exists():
        items, notes = _in_engine() if images else ([], [])
        return _done(items, notes, dry_run=dry_run, as_json=as_json)
    check_folder(state)
    with only_run(state):
        if not dry_run:
            for name in sweep_local(state.resolve() / "running"):
                ui.say(f"ended {name}, left behind by a run that was killed")
        items, notes = _in_engine() if images else ([], [])
        items += folder_items(state, {Kind.LEFTOVER, Kind.CACHE} | ({Kind.RESULT} if results else set()))
        notes += [f"{name} is a link, and is left as it is" for name in links_in(state)]
        code = _done(items, notes, dry_run=dry_run, as_json=as_json)
    if results and not dry_run:
        removed(state / "lock")
        with suppress(OSError):
            state.rmdir()
    return code


def _in_engine() -> tuple[list[Item], list[str]]:
    try:
        client = connect(timeout=ANSWER_SECONDS)
    except NotReadyError as error:
        return [], [f"containers and images were not looked at: {error.what}"]
    try:
        items, notes = engine_items(client)
        images = sum(item.kind is Kind.IMAGE for item in items)
        if images and run_goes_on(client):
            items = [item for item in items if item.kind is not Kind.IMAGE]
            return items, [
                *notes,
                f"{ui.count(images, 'image')} left: the run that goes on may need them next",
            ]
        return items, [*notes, *([SHARED] if images else [])]
    except FAILURES as error:
        return [], [f"containers and images were not looked at: {ui.one_line(str(error))}"]


def _done(items: Sequence[Item], notes: list[str], *, dry_run: bool, as_json: bool) -> int:
    """Remove the items unless it is a dry run, and tell; the exit code."""
    failed = {} if dry_run else {index: why for index, item in enumerate(items) if (why := item.remove())}
    if as_json:
        rows = [_row_json(item, failed.get(index, "")) for index, item in enumerate(items)]
        click.echo(json.dumps({"removed": not dry_run, "items": rows, "notes": notes}, indent=2))
    else:
        _print(
            items, [*notes, *(f"{items[index].name} is still there: {why}" for index, why in failed.items())]
        )
        click.echo(_summary([item for index, item in enumerate(items) if index not in failed], dry_run))
    return ExitCode.NOT_READY if failed else ExitCode.DONE


def _print(items: Sequence[Item], notes: Sequence[str]) -> None:
    if items:
        rows = [
            (item.kind.value, item.name, str(item.count), _megabytes(item.bytes), item.about)
            for item in items
        ]
        ui.print_table(("kind", "name", "count>", "size>", "what"), rows)
    for note in notes:
        click.echo(f"note: {note}")


def _summary(items: Sequence[Item], dry_run: bool) -> str:
    if not items:
        return "there is nothing to remove"
    files = _megabytes(sum(item.bytes or 0 for item in items if item.kind is not Kind.IMAGE))
    count = sum(item.count for item in items)
    if dry_run:
        again = completed("repro clean")
        return f"would remove {ui.count(count, 'thing')}, {files} in files; next: {again}"
    return f"removed {ui.count(count, 'thing')}, {files} in files"


def _megabytes(size: int | None) -> str:
    """Sizes of images count shared layers each time, so they are never added up."""
    return "-" if size is None else f"{size / 1e6:,.1f} MB"


def _row_json(item: Item, why: str) -> dict[str, object]:
    return {
        "kind": item.kind.value,
        "name": item.name,
        "count": item.count,
        "bytes": item.bytes,
        "what": item.about,
        "still_there": why or None,
    }
