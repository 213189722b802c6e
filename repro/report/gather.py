"""From a ledger and what lies beside it to a report."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from repro import __version__, ui
from repro.errors import UsageError
from repro.factors import SAME
from repro.report.anatomy import describe
from repro.report.model import CellFacts, CellRate, Report
from repro.report.pairing import agreement, compare_cells, read_outcomes
from repro.report.past import read_diagnosis, read_searches
from repro.stats import anytime
from repro.store import Ledger, Tally
from repro.store.bounded import Failing, Reader, open_reader
from repro.trial.records import Mode, Outcome

FAILURES = 1200
"""Failing trials that are looked at, over all series."""

PASSES = 1200
"""Passing trials that are looked at, over all series."""

SEEDS_SHOWN = 40
"""Failing seeds that a report names, a series."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a report is asked to be about; None lets the ledger decide.

    Args:
        test: pytest's name of the test.
        revision: of the subject, or its beginning.
    """

    test: str | None = None
    revision: str | None = None


def gather(ledger: Ledger, state: Path, wanted: Wanted = Wanted()) -> Report:
    """The report about one test of one revision: the one with the most failures, unless it is named.

    Args:
        ledger: caught up with its evidence.
        state: the run's folder, with searches and the diagnosis.

    Raises:
        UsageError: the ledger holds no trials, or none of what is wanted.
    """
    tallies = ledger.tallies()
    chosen = choose(tallies, wanted)
    mine = [tally for tally in tallies if (tally.series.test, tally.series.revision) == chosen]
    test, revision = chosen
    with open_reader(ledger.path) as reader:
        return _report(ledger, reader, state, test, revision, mine, _elsewhere(tallies, chosen))


def _report(
    ledger: Ledger,
    reader: Reader,
    state: Path,
    test: str,
    revision: str,
    tallies: Sequence[Tally],
    elsewhere: Sequence[str],
) -> Report:
    failing = {tally.series: reader.failing(tally.series, _part(FAILURES, len(tallies))) for tally in tallies}
    rows = [_rate(tally, failing[tally.series]) for tally in tallies]
    rates = [row for row in rows if row.series.mode is Mode.SEEDS]
    outcomes, most = read_outcomes(reader, rates)
    varied = {tally.series: found for tally, found in zip(tallies, failing.values(), strict=True)}
    looked_at = [trial for row in rates or rows for trial in varied[row.series]]
    passing = [
        comparisons
        for row in rates or rows
        for comparisons in reader.passing(row.series, _part(PASSES, len(rates or rows)))
    ]
    return Report(
        test=test,
        revision=revision,
        rates=rates,
        other_rates=[row for row in rows if row.series.mode is not Mode.SEEDS],
        pairing=compare_cells(rates, outcomes, most),
        anatomy=describe(looked_at, passing, agreement(outcomes, failing)),
        searches=read_searches(state, test),
        diagnosis=read_diagnosis(state, test, revision),
        environments=_environments(ledger, {tally.series.cell for tally in tallies}),
        digests={build.cell: build.digest for build in ledger.builds() if build.ok},
        elsewhere=elsewhere,
        notes=_notes(ledger, rows),
        kit=__version__,
    )


def choose(tallies: Sequence[Tally], wanted: Wanted) -> tuple[str, str]:
    """Test and revision with the most failures, then with the most trials.

    Raises:
        UsageError: there are no trials, or none of what is wanted.
    """
    if not tallies:
        raise UsageError(
            "the ledger holds no trials", why="a report is made of recorded trials", next_step="repro matrix"
        )
    weights: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for tally in tallies:
        weight = weights[tally.series.test, tally.series.revision]
        weight[0] += tally.failed if tally.series.mode is not Mode.REPLAY else 0
        weight[1] += tally.n
    fitting = [key for key in weights if _fits(key, wanted)]
    if not fitting:
        held = ", ".join(sorted({test for test, _ in weights})[:4])
        raise UsageError(
            f"the ledger has no trials of {wanted.test or 'that test'}"
            + (f" at revision {wanted.revision}" if wanted.revision else ""),
            why=f"it has trials of {ui.one_line(held)}",
            next_step="`repro status` lists tests and revisions",
        )
    return max(fitting, key=lambda key: (weights[key], key))


def _fits(key: tuple[str, str], wanted: Wanted) -> bool:
    test, revision = key
    named = wanted.test is None or wanted.test in (test, test.split("[")[0], test.split("::")[-1])
    return named and (wanted.revision is None or revision.startswith(wanted.revision))


def _elsewhere(tallies: Sequence[Tally], chosen: tuple[str, str]) -> list[str]:
    """What else the ledger holds, so that no failure goes unmentioned."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for tally in tallies:
        key = (tally.series.test, tally.series.revision)
        if key != chosen and tally.series.mode is not Mode.REPLAY:
            counts[key][0] += tally.failed
            counts[key][1] += tally.n
    rows = sorted(counts.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        f"{test} at {revision[:20]}: {failed} of {n} failed" for (test, revision), (failed, n) in rows if n
    ]


def _rate(tally: Tally, failing: Sequence[Failing]) -> CellRate:
    return CellRate(
        series=tally.series,
        rate=anytime(tally.failed, tally.n),
        others=dict(tally.others),
        failing_seeds=sorted({trial.seed for trial in failing})[:SEEDS_SHOWN],
    )


def _part(total: int, series: int) -> int:
    return max(4, total // max(series, 1))


def _environments(ledger: Ledger, cells: Iterable[str]) -> list[CellFacts]:
    wanted = set(cells)
    return [
        CellFacts(cell=environment.cell, facts=environment.facts)
        for environment in ledger.environments()
        if environment.cell in wanted
    ]


def _notes(ledger: Ledger, rows: Sequence[CellRate]) -> list[str]:
    notes = []
    if any(not row.series.gpu and "-cpu" in row.series.cell for row in rows):
        notes.append(
            "Cells marked cpu ran without a GPU, kernels under Triton's interpreter, and `torch.rand` draws"
            " from another grid there: their rates say nothing about a GPU."
        )
    again = SAME.name
    if any(row.series.cell.endswith(again) for row in rows):
        notes.append(
            f"Cells that end in {again} are the same cell once more, run by `repro factors`: nothing reads"
            " the variable, and what differs there differs by itself."
        )
    others: dict[Outcome, int] = defaultdict(int)
    for row in rows:
        for outcome, number in row.others.items():
            others[outcome] += number
    if others:
        notes.append(
            f"In no rate, since they are neither a pass nor the failure looked for: {ui.outcomes(others)}."
        )
    garbled = sum(ledger.garbled_lines().values())
    if garbled:
        notes.append(f"{ui.count(garbled, 'line')} of the evidence could not be read and counts nowhere.")
    return notes


def facts_digest(facts: Mapping[str, object]) -> str:
    """Facts as one text, to tell equal ones."""
    return json.dumps(facts, sort_keys=True)
