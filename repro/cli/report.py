"""`repro report`: the issue text, the HTML page, the evidence."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from repro import ui
from repro.cli.options import Place, json_option, subject_options, workspace_options
from repro.cli.steps import completed
from repro.cli.workspace import make_runner, only_run
from repro.engines import gpu_model
from repro.errors import ReproError, UsageError
from repro.report import Redactor, Report, Wanted, gather, redacted_report, to_html, to_markdown
from repro.report.bundle import Bundle, make_bundle, write_bundle
from repro.report.model import Proof
from repro.report.redact import said
from repro.report.script import prove
from repro.report.script.choosing import at_revision, choose_case
from repro.report.verdict import title, verdict
from repro.run import Target
from repro.store import Ledger


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """Where the script is to run."""

    place: Place
    subject: str | None
    test_file: str | None
    redactor: Redactor


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files. [default: STATE/report]",
)
@click.option(
    "--revision", metavar="REV", help="Revision of the subject. [default: the one that failed most]"
)
@click.option("--script/--no-script", default=True, help="Write a standalone script, and run it in a cell.")
@click.option(
    "--redact/--no-redact", default=True, help="Leave out paths, names, hosts, UUIDs, addresses, secrets."
)
@click.option("--whole-ledger", is_flag=True, help="Put all trials of a large ledger into the evidence.")
@click.option("--all-inputs", is_flag=True, help="Put all kept inputs into the evidence, however large.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would be redacted and written; write and run nothing."
)
@workspace_options
@subject_options
@json_option
def report(
    place: Place,
    out: Path | None,
    revision: str | None,
    script: bool,
    redact: bool,
    whole_ledger: bool,
    all_inputs: bool,
    dry_run: bool,
    subject: str | None,
    test: str | None,
    test_file: str | None,
    as_json: bool,
) -> None:
    """Write report.md (fits an issue), report.html (with charts) and report.zip (the evidence)."""
    state, redactor = place.state.absolute(), Redactor(enabled=redact)
    out = out or place.state / "report"
    with _open(state, catch_up=not dry_run) as ledger:
        told = gather(ledger, state, Wanted(test=_name(test), revision=revision))
        asked = _Asked(place=place, subject=subject, test_file=test_file, redactor=redactor)
        told = _with_script(told, ledger, asked, script, dry_run)
        clean = redacted_report(told, redactor)
        pages = _pages(clean)
        with make_bundle(
            ledger,
            state,
            (told.test, told.revision),
            clean,
            pages,
            redactor,
            whole=whole_ledger,
            all_inputs=all_inputs,
        ) as bundle:
            if dry_run:
                _show(bundle, redactor, out)
            else:
                _write(pages, bundle, out)
    _tell(clean, redactor, out, pages, as_json=as_json, written=not dry_run)


def _name(test: str | None) -> str | None:
    return test.rpartition(".py::")[2] if test else None


def _open(state: Path, *, catch_up: bool) -> Ledger:
    path = state / "ledger.sqlite"
    if not path.exists() and not (state / "blocks").exists():
        raise UsageError(f"there is no ledger in {state.name}", next_step="repro matrix")
    ledger = Ledger.open(path)
    if catch_up:
        ledger.catch_up()
    return ledger


def _with_script(told: Report, ledger: Ledger, asked: _Asked, wanted: bool, dry_run: bool) -> Report:
    """The report with a script that was run, or with the reason why there is none."""
    if not any(row.rate.failed for row in told.main_rates):
        return replace(told, proof=Proof(refused="no trial has failed, so there is nothing to show"))
    if not wanted or dry_run:
        why = "--no-script was given" if not wanted else "a dry run runs nothing"
        return replace(told, proof=Proof(refused=why))
    try:
        return _shown(told, ledger, asked)
    except ReproError as error:
        why = f"{error.what}" + (f" ({error.why})" if error.why else "")
        return replace(told, proof=Proof(refused=f"no cell could run it: {why}"))


def _shown(told: Report, ledger: Ledger, asked: _Asked) -> Report:
    workspace = asked.place.open()
    cell, case = choose_case(told, ledger.path, workspace.cells, gpu_model() if workspace.gpus() else "")
    tested = at_revision(workspace.subject(asked.subject, told.test, asked.test_file), told, workspace.state)
    case = replace(case, clean=asked.redactor.text)
    target = Target(cell=cell, subject=tested)
    with only_run(workspace.state):
        runner = make_runner(workspace, ledger, ui.say)
        prepared = runner.prepare(target)
        ui.say(f"running a standalone script in {cell.id}")
        gpu = workspace.first_gpu() if cell.on_gpu else None
        proof = prove(runner, target, prepared, case, gpu=gpu, clock=time.monotonic)
    return replace(told, proof=proof, origin=tested.origin)


def _pages(clean: Report) -> dict[str, bytes]:
    pages = {"report.md": to_markdown(clean).encode(), "report.html": to_html(clean).encode()}
    if clean.proof.shown:
        pages["script.py"] = clean.proof.script.encode()
    return pages


def _write(pages: Mapping[str, bytes], bundle: Bundle, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, content in pages.items():
        draft = out / f".{name}.part"
        draft.write_bytes(content)
        draft.replace(out / name)
    if "script.py" not in pages:
        (out / "script.py").unlink(missing_ok=True)  # an older report's
    write_bundle(bundle, out / "report.zip")


def _show(bundle: Bundle, redactor: Redactor, out: Path) -> None:
    """What a dry run would do."""
    rows = [
        (kind, ui.one_line(text, 80), instead, times)
        for kind, text, instead, times in said(redactor.found.items())
    ]
    if rows:
        ui.print_table(("kind", "text", "replaced by", "times>"), rows, title="would be redacted")
    else:
        click.echo("nothing would be redacted" + ("" if redactor.enabled else ": --no-redact"))
    files = [(f"report.zip: {member.name}", f"{member.size:,}") for member in bundle.members]
    ui.print_table(("file", "bytes>"), files, title=f"would be written to {ui.display_path(out)}")
    for line in bundle.left_out:
        click.echo(f"left out: {line}")


def _tell(
    clean: Report, redactor: Redactor, out: Path, pages: Mapping[str, bytes], *, as_json: bool, written: bool
) -> None:
    names = [*pages, "report.zip"] if written else []
    if as_json:
        click.echo(json.dumps(_json(clean, redactor, [str(out / name) for name in names]), indent=2))
        return
    click.echo(title(clean))
    for question, line in verdict(clean):
        click.echo(f"  {question}: {completed(line)}")
    if clean.proof.refused:
        click.echo(f"  no script: {clean.proof.refused}")
    for name in names:
        ui.say(f"wrote {ui.display_path(out / name)}")


def _json(clean: Report, redactor: Redactor, files: list[str]) -> dict[str, object]:
    return {
        "title": title(clean),
        "verdict": dict(verdict(clean)),
        "test": clean.test,
        "revision": clean.revision,
        "rates": [
            {"cell": row.series.cell, "gpu": row.series.gpu or None, "mode": row.series.mode.value,
             "rate": row.rate.to_json(), "others": {key.value: n for key, n in row.others.items()}}
            for row in (*clean.rates, *clean.other_rates)
        ],
        "script": {
            "shown": clean.proof.shown,
            "cell": clean.proof.cell,
            "refused": clean.proof.refused or None,
        },
        "redacted": sum(redactor.found.values()),
        "files": files,
    }  # fmt: skip
