"""What a report says in sentences: of rates, of pairs of cells, of failures.

Sentences are plain text with code between backticks; `repro.report.inline` turns them into Markdown and HTML.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from repro import ui
from repro.report.inline import code
from repro.report.model import Anatomy, CellRate, Failure, Neighbour, Pairing, Proof, Report, Spread
from repro.stats import Rate
from repro.trial.records import Mode

RATES_HOW = (
    "Failed/trials with the 95 % interval, which is valid however sampling was stopped. A trial counts if it"
    " passed or failed with the failure looked for; other outcomes stand beside it."
    " `repro matrix` runs the same seeds in all cells, a search further ones of each cell's own."
)

MODES = {
    Mode.SEEDS: "seeds varied, many trials a process",
    Mode.FRESH: "seeds varied, a fresh process each",
    Mode.REPEAT: "one seed, repeated in one process",
    Mode.REPLAY: "kept inputs, replayed bit for bit",
}


def rates(rows: Sequence[CellRate]) -> str:
    """The failure rates of some series in a few words."""
    ran = [row for row in rows if row.rate.trials]
    failing = [row.rate for row in ran if row.rate.failed]
    if not failing:
        return f"none of {counted(sum(row.rate.trials for row in ran), 'trial')}"
    counts = {(rate.failed, rate.trials) for rate in failing}
    cells = f" in {len(failing)} of {ui.count(len(ran), 'cell')}" if len(failing) < len(ran) else ""
    if len(counts) == 1:
        rate = failing[0]
        every = f" in each of {len(failing)} cells" if len(ran) > 1 and not cells else cells
        return f"{share(rate)} of trials ({counted(rate.failed)}/{counted(rate.trials)}{every})"
    low, high = min(failing, key=_rate), max(failing, key=_rate)
    of = counted(sum(rate.trials for rate in failing), "trial")
    between = share(low) if share(low) == share(high) else f"{share(low)} to {share(high)}"
    return f"{between} of trials ({of}{cells or ', ' + ui.count(len(failing), 'cell')})"


def _rate(rate: Rate) -> float:
    return rate.rate or 0.0


def share(rate: Rate) -> str:
    """A rate as a percentage."""
    return "-" if rate.rate is None else ui.percent(rate.rate)


def interval(rate: Rate) -> str:
    """The interval of a rate."""
    return f"{ui.percent(rate.low)} to {ui.percent(rate.high)}" if rate.trials else "-"


def capital(sentence: str) -> str:
    """A sentence that begins with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


def differences(pairing: Pairing) -> str:
    """How many pairs of cells differ."""
    pairs, differing = pairing.pairs, pairing.differing
    seeds = [pair.counts.n for pair in pairs if pair.counts is not None]
    how = f"{counted(min(seeds))} common seeds or more" if seeds else "counts alone"
    over = f"{ui.count(len(pairs), 'comparison')} ({how}, false discovery rate 5 %)"
    if not differing:
        return f"no difference between cells was found in {over}."
    pair = differing[0]
    more = max(
        pair.a, pair.b, key=lambda series: (series == pair.b) == (pair.judged.comparison.difference > 0)
    )
    less = pair.a if more == pair.b else pair.b
    between = f"{more.cell} fails more often than {less.cell}"
    if more.cell == less.cell:
        between = f"{more.cell} fails more often on {more.gpu or 'the CPU'} than on {less.gpu or 'the CPU'}"
    return f"{len(differing)} of {over} differ; most clearly {between} (q = {number(pair.judged.q_value)})."


def failed_how(failure: Failure) -> str:
    """One kind of failure in a few words."""
    if failure.comparison is None:
        return code(failure.key)
    elements = (
        f"{spread(failure.mismatched)} of {counted(failure.size, 'element')}"
        if failure.mismatched
        else "values"
    )
    beyond = f", off by up to {number(failure.ratio.high)} times the tolerance" if failure.ratio else ""
    line = code(failure.source or failure.function)
    return f"comparison {failure.comparison} ({line}), {elements}{beyond}"


def agreed(report: Report) -> str:
    """Whether cells fail alike, in one sentence."""
    found = report.anatomy.agreement
    if found is None or not found.somewhere:
        return ""
    seeds = f"Of {ui.count(found.somewhere, 'seed')} that failed in some of {found.cells} cells,"
    seeds += f" {found.everywhere} failed in all"
    if not found.compared:
        return f"{seeds}."
    return f"{seeds}; {found.same_elements} of {found.compared} at the same elements wherever they failed."


def spread(values: Spread | None) -> str:
    """ "1", "1 to 16"."""
    if values is None:
        return "-"
    return (
        number(values.low) if values.low == values.high else f"{number(values.low)} to {number(values.high)}"
    )


def number(value: float) -> str:
    """A number as a person reads it: whole ones in full, others to three digits."""
    if abs(value) < 1e15 and value == int(value):
        return counted(int(value))
    return counted(int(float(f"{value:.3g}"))) if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def counted(value: int, noun: str = "") -> str:
    """A count with its thousands apart, and what is counted."""
    return f"{value:,} {noun if value == 1 else ui.plural(noun)}" if noun else f"{value:,}"


def cells_of(rows: Sequence[CellRate]) -> list[str]:
    """The cells of some rates, each once, in order."""
    return list(dict.fromkeys(row.series.cell for row in rows))


def paired_how(pairing: Pairing) -> str:
    """What was compared with what, and how."""
    with_what = "each with each" if pairing.reference is None else f"each with {code(pairing.reference.cell)}"
    seeds = "" if pairing.all_seeds else f", on the first {counted(pairing.seeds, 'seed')} of each at most"
    return (
        f"Cells were compared {with_what}, seed by seed on one GPU model (exact McNemar test){seeds},"
        " by their counts between models (Fisher's test). q is the smallest false discovery rate at which a"
        f" difference counts; 5 % is the limit. {capital(differences(pairing))}"
    )


def failure_lines(failure: Failure) -> list[str]:
    """One kind of failure: which comparison, how many elements, how far off."""
    lines = [f"{ui.count(failure.trials, 'trial')}: {failed_how(failure)}, at {code(failure.where)}"]
    if failure.comparison is None:
        return [*lines, "no tensor comparison failed there: the message is all there is"]
    shape = (
        f"{failure.dtype} tensor of shape {tuple(failure.shape)}"
        if failure.shape
        else f"{failure.dtype} value"
    )
    allowed = ""
    if failure.atol is not None and failure.rtol is not None:
        allowed = f", tolerance atol {number(failure.atol)}, rtol {number(failure.rtol)}"
    lines.append(f"{code(failure.function)} of a {shape}{allowed}")
    if failure.error and failure.ratio:
        lines.append(
            f"largest absolute error a trial: {spread(failure.error)} (middle"
            f" {number(failure.error.middle)}); in units of the tolerance: {spread(failure.ratio)}"
            f" (middle {number(failure.ratio.middle)})"
        )
    if failure.special:
        lines.append(f"NaN or infinities on one side at least in {ui.count(failure.special, 'trial')}")
    return lines


def near(neighbour: Neighbour) -> str:
    """How near another comparison came to its tolerance."""
    failed = f"failed in {neighbour.failed}" if neighbour.failed else "passed in each"
    return (
        f"comparison {neighbour.comparison} ({code(neighbour.where)}) {failed} of the same"
        f" {ui.count(neighbour.trials, 'trial')}; its largest error was {number(neighbour.ratio)} times the"
        " tolerance"
    )


def gap(anatomy: Anatomy) -> list[str]:
    """Whether passing trials come near the tolerance that failing ones exceed."""
    passing = [ratio for ratio in anatomy.passing_ratios if math.isfinite(ratio)]
    failing = [ratio for ratio in anatomy.failing_ratios if math.isfinite(ratio)]
    if not passing or not failing:
        return []
    return [
        f"the same comparison in {ui.count(len(passing), 'passing trial')}: largest error at most"
        f" {number(max(passing))} times the tolerance; in failing ones {number(min(failing))} times at least"
    ]


def ran(proof: Proof) -> str:
    """What came of running the script."""
    on = f" on {proof.gpu}" if proof.gpu else ""
    return (
        f"It ran in {code(proof.cell)}{on} before it was printed here, and ended with exit status"
        f" {proof.status} after {ui.duration(proof.seconds)}, as it promises. Run it in the subject's folder."
    )


def predicted(report: Report) -> list[str]:
    """The failure rate from first principles beside the measured one."""
    rate = report.diagnosis.predicted_rate
    if rate is None:
        return []
    return [f"Predicted failure rate: {ui.percent(rate)}; measured: {rates(report.main_rates)}."]
