"""Which cells differ: by seeds on one GPU model, by counts between models, false discoveries controlled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from repro.report.model import Agreement, CellRate, Failure, Pair, Pairing
from repro.stats import Comparison, PairedCounts, compare_paired, compare_unpaired, judge
from repro.store import Series
from repro.store.bounded import Failing, Key, Reader

LOOKED_AT = 60_000
"""Trials that are read for comparisons seed by seed, over all series."""

EVERY_PAIR = 12
"""Up to so many series each is compared with each; beyond, each with one of them."""

Outcomes = Mapping[Series, Mapping[Key, bool]]


def read_outcomes(reader: Reader, rates: Sequence[CellRate]) -> tuple[dict[Series, dict[Key, bool]], int]:
    """How each seed ended, series by series; and how many seeds a series were asked for, at most."""
    most = max(100, LOOKED_AT // max(len(rates), 1))
    return {row.series: reader.outcomes(row.series, most) for row in rates}, most


def compare_cells(rates: Sequence[CellRate], outcomes: Outcomes, most: int) -> Pairing:
    """Compare the series with each other; seeds mean the same inputs on one GPU model alone."""
    rows = [row for row in rates if row.rate.trials]
    reference = None if len(rows) <= EVERY_PAIR else max(rows, key=lambda row: row.rate.trials)
    if reference is None:
        chosen = list(combinations(rows, 2))
    else:
        chosen = [(reference, row) for row in rows if row is not reference]
    counts: dict[tuple[Series, Series], PairedCounts | None] = {}
    compared: dict[tuple[Series, Series], Comparison] = {}
    for a, b in chosen:
        key = (a.series, b.series)
        counts[key] = _paired(a.series, b.series, outcomes)
        compared[key] = _compare(a, b, counts[key])
    judged = judge(compared)
    pairs = [Pair(a=a, b=b, counts=counts[a, b], judged=judged[a, b]) for a, b in judged]
    return Pairing(
        pairs=sorted(pairs, key=lambda pair: (pair.judged.q_value, pair.a, pair.b)),
        reference=reference.series if reference else None,
        seeds=most,
        all_seeds=all(row.rate.trials <= most for row in rows),
    )


def _compare(a: CellRate, b: CellRate, counts: PairedCounts | None) -> Comparison:
    if counts is not None:
        return compare_paired(counts)
    return compare_unpaired(a.rate.failed, a.rate.trials, b.rate.failed, b.rate.trials)


def _paired(a: Series, b: Series, outcomes: Outcomes) -> PairedCounts | None:
    """Counts over common seeds; None where there are none, or the seeds mean other inputs."""
    if a.gpu != b.gpu:
        return None
    mine, theirs = outcomes[a], outcomes[b]
    common = mine.keys() & theirs.keys()
    if not common:
        return None
    n = {(False, False): 0, (False, True): 0, (True, False): 0, (True, True): 0}
    for key in common:
        n[mine[key], theirs[key]] += 1
    return PairedCounts(
        both=n[True, True], a_only=n[True, False], b_only=n[False, True], neither=n[False, False]
    )


def agreement(outcomes: Outcomes, failing: Mapping[Series, Sequence[Failing]]) -> Agreement | None:
    """Whether the cells of the GPU model with most of them fail at the same seeds and elements.

    None with fewer than two cells that ran common seeds.
    """
    groups: dict[str, list[Series]] = {}
    for series, seeds in outcomes.items():
        if seeds:
            groups.setdefault(series.gpu, []).append(series)
    group = max(groups.values(), key=len, default=[])
    common = set.intersection(*(set(outcomes[series]) for series in group)) if group else set()
    if len(group) < 2 or not common:
        return None
    failed = [{key for key in common if outcomes[series][key]} for series in group]
    places = [elements(failing.get(series, ())) for series in group]
    several = [
        place for seed in {key[0] for key in set.union(*failed)} if len(place := _at(places, seed)) > 1
    ]
    return Agreement(
        cells=len(group),
        seeds=len(common),
        somewhere=len(set.union(*failed)),
        everywhere=len(set.intersection(*failed)),
        compared=len(several),
        same_elements=sum(len(set(place)) == 1 for place in several),
    )


def elements(failing: Sequence[Failing]) -> dict[int, str]:
    """By seed, which elements differed: equal texts for equal ones; seeds without a record are left out."""
    found: dict[int, str] = {}
    for trial in failing:
        marks = [
            f"{one['index']}:{one['mismatched_at']}" for one in trial.comparisons if one.get("mismatched_at")
        ]
        if marks:
            found[trial.seed] = " ".join(marks)
    return found


def _at(places: Sequence[Mapping[int, str]], seed: int) -> list[str]:
    return [place[seed] for place in places if seed in place]


def only_failure(failures: Sequence[Failure]) -> Failure | None:
    """The one kind of failure, where there is one alone."""
    return failures[0] if len(failures) == 1 else None
