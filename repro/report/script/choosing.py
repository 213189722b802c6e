"""Which cell and which failing seeds a script has to show the failure with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from repro import ui
from repro.cells import Cell
from repro.errors import NotReadyError, NotReproducedError, UsageError
from repro.report.model import CellRate, Report
from repro.report.script.prove import Case
from repro.store.bounded import Failing, open_reader
from repro.subject import Subject
from repro.subject.layout import find_python_path
from repro.subject.metadata import with_metadata
from repro.subject.placing import LAYOUT

LOOKED_AT = 200
"""Failing trials of a cell among which those with the same signature are taken."""

_VERSIONS = ("torch", "triton", "numpy", "python")


def choose_case(report: Report, ledger: Path, cells: Sequence[Cell], gpu: str) -> tuple[Cell, Case]:
    """The cell that can run here and fails most often, with its failing trials.

    Args:
        ledger: its file.
        cells: that can run.
        gpu: model of the GPU that is here, or "".

    Raises:
        UsageError: no cell that failed is one of `cells`.
        NotReadyError: those that failed need another GPU.
        NotReproducedError: no failure has a signature.
    """
    known = {cell.id: cell for cell in cells}
    failed = [row for row in report.main_rates if row.rate.failed]
    here = [row for row in failed if row.series.cell in known]
    if not here:
        raise UsageError(
            f"none of the cells that failed is in this matrix ({_few(failed)})",
            next_step="name the matrix, the profile or the engine that they ran with",
        )
    fitting = [row for row in here if row.series.gpu in ("", gpu)]
    if not fitting:
        raise NotReadyError(f"it failed on {here[0].series.gpu}, and that GPU is not here")
    row = max(fitting, key=lambda row: (row.rate.rate or 0.0, row.rate.trials))
    failing = _alike(report, ledger, row)
    if not failing:
        raise NotReproducedError("the failing trials have no signature, so nothing tells what to look for")
    return known[row.series.cell], Case(
        failing=failing, rate=row.rate, versions=_versions(report, row.series.cell)
    )


def _few(rows: Sequence[CellRate]) -> str:
    return ui.one_line(", ".join(dict.fromkeys(row.series.cell for row in rows[:3])))


def _alike(report: Report, ledger: Path, row: CellRate) -> list[Failing]:
    """Failing trials with the report's most frequent signature, one a seed."""
    with open_reader(ledger) as reader:
        failing = reader.failing(row.series, LOOKED_AT)
    keys = [failure.key for failure in report.anatomy.failures]
    first = next((key for key in keys if any(trial.signature_key == key for trial in failing)), None)
    return list({trial.seed: trial for trial in failing if trial.signature_key == first}.values())


def _versions(report: Report, cell: str) -> list[str]:
    facts = next((each.facts for each in report.environments if each.cell == cell), {})
    return [f"{name} {facts[name]}" for name in _VERSIONS if facts.get(name)] or ["unknown versions"]


def at_revision(subject: Subject, report: Report, state: Path) -> Subject:
    """The subject as it was when the trials ran: from its earlier copy, where it has changed since.

    Raises:
        UsageError: there is no such copy.
    """
    subject = replace(subject, test=report.test)
    if subject.revision == report.revision:
        return subject
    root = state / "subjects" / LAYOUT / report.revision.partition("+test-")[0]
    if "+test-" in report.revision or not root.is_dir():
        raise UsageError(
            f"the trials are of revision {report.revision[:20]}, the subject is at {subject.revision[:20]}",
            next_step="give the same --subject, --test and --test-file as the trials were run with",
        )
    given = subject.python_path if subject.own_test_file is None else ()
    kept = tuple(name for name in given if (root / name).is_dir()) or find_python_path(root)
    return replace(
        subject,
        root=root,
        revision=report.revision,
        python_path=tuple(dict.fromkeys(with_metadata(root, kept))),
        own_test_file=None,
    )
