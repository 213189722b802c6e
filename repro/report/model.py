"""What a report says, as plain values; every number comes from trials that the ledger holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from repro.stats import Judged, PairedCounts, Rate
from repro.store import Series
from repro.trial.records import Mode, Outcome

Verdict = Literal["supported", "ruled out", "untested"]


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A suspected cause, as `repro diagnose` weighed it.

    Args:
        name: of the cause.
        verdict: what the evidence says.
        evidence: a sentence each.
        share: share of the failing elements that it explains, or None.
    """

    name: str
    verdict: Verdict
    evidence: Sequence[str] = ()
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What `.repro/diagnosis.json` says; empty where `repro diagnose` has not run.

    Args:
        causes: best supported first.
        minimized: the smallest case that still fails, a line each.
        conclusion: what it comes to, a line each.
        predicted_rate: failure rate from first principles, or None.
        offsets: how far the coordinates of failing elements lie behind the jump that is nearest, in ulp;
            negative before it.
        advice: what to do about it, a line each.
        experiments: what was run, a line each.
        about: the cell and revision that it is about, in a sentence, or "".
        problem: why the file cannot be used, or "".
    """

    causes: Sequence[Cause] = ()
    minimized: Sequence[str] = ()
    conclusion: Sequence[str] = ()
    predicted_rate: float | None = None
    offsets: Sequence[float] = ()
    advice: Sequence[str] = ()
    experiments: Sequence[str] = ()
    about: str = ""
    problem: str = ""

    def of(self, verdict: Verdict) -> list[Cause]:
        """The causes with a verdict."""
        return [cause for cause in self.causes if cause.verdict == verdict]


@dataclass(frozen=True, kw_only=True)
class CellRate:
    """How often one series failed.

    Args:
        rate: with an interval that stays valid however sampling was stopped.
        others: trials that enter no rate, by outcome.
        failing_seeds: the first few.
    """

    series: Series
    rate: Rate
    others: Mapping[Outcome, int] = field(default_factory=dict)
    failing_seeds: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two series compared: seed by seed on one GPU model, or by their counts alone.

    Args:
        counts: seed by seed; None where the seeds mean different inputs.
    """

    a: Series
    b: Series
    counts: PairedCounts | None
    judged: Judged


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Every comparison of cells that was made, with false discoveries controlled over all of them.

    Args:
        pairs: findings first.
        reference: the series that all others were compared with, or None where each pair was.
        seeds: seeds a series that were looked at, at most.
        all_seeds: whether these are all that it ran.
    """

    pairs: Sequence[Pair] = ()
    reference: Series | None = None
    seeds: int = 0
    all_seeds: bool = True

    @property
    def differing(self) -> list[Pair]:
        """The pairs that differ."""
        return [pair for pair in self.pairs if pair.judged.differs]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Least, middle and largest of some numbers."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Element:
    """One element that differed.

    Args:
        seed: of the trial.
        index: in the tensor.
        allowed: atol + rtol * |expected|.
    """

    seed: int
    index: Sequence[int]
    actual: float
    expected: float
    allowed: float


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Failures with one signature.

    Args:
        key: the signature.
        source: the line of the test that failed.
        trials: how many of the trials looked at.
        comparison: number of the comparison in the test, from 0, or None where none failed.
        function: that compared, such as `torch.testing.assert_close`.
        where: file, function and line.
        mismatched: elements that differed, a trial.
        size: elements of the tensor.
        error: largest absolute error, a trial.
        ratio: largest error in units of its tolerance, a trial.
        special: trials with NaN or infinities on either side.
        worst: elements with the largest errors.
        message: of one of the trials.
    """

    key: str
    source: str
    trials: int
    comparison: int | None = None
    function: str = ""
    where: str = ""
    dtype: str = ""
    shape: Sequence[int] = ()
    size: int = 0
    atol: float | None = None
    rtol: float | None = None
    mismatched: Spread | None = None
    error: Spread | None = None
    ratio: Spread | None = None
    special: int = 0
    worst: Sequence[Element] = ()
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Whether cells fail alike, over seeds that ran in all of them on one GPU model.

    Args:
        cells: that took part.
        seeds: that ran in all of them.
        somewhere: that failed in some.
        everywhere: that failed in all.
        compared: that failed in several, with the elements recorded.
        same_elements: of those, that failed at the same elements everywhere.
    """

    cells: int
    seeds: int
    somewhere: int
    everywhere: int
    compared: int
    same_elements: int


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """Another comparison of the same test, that did not decide the failure: how near it came."""

    comparison: int
    where: str
    trials: int
    failed: int
    ratio: float


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """Where failing elements lie along one dimension: how many in each of some equal parts."""

    number: int
    size: int
    counts: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """What failures look like, from a bounded number of them.

    Args:
        looked_at: failing trials that were read.
        failures: by signature, most frequent first.
        passing_ratios, failing_ratios: of the comparison that fails most often: the largest error in
            units of its tolerance, a trial.
        dimensions: of the same comparison.
    """

    looked_at: int = 0
    failures: Sequence[Failure] = ()
    agreement: Agreement | None = None
    neighbours: Sequence[Neighbour] = ()
    passing_ratios: Sequence[float] = ()
    failing_ratios: Sequence[float] = ()
    dimensions: Sequence[Dimension] = ()


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One candidate of a search."""

    label: str
    failed: int
    trials: int
    replayed_failed: int = 0
    replayed: int = 0
    first_bad: bool = False


@dataclass(frozen=True, kw_only=True)
class Search:
    """What one `repro bisect` answered.

    Args:
        axis: searched along.
        sentence: the verdict.
        decided: whether the answer is a name, a range that cannot be narrowed, or that nothing changed.
        link: web address that shows the change, or "".
        tried: in order of the line.
        untestable: candidates that cannot be tested, with the reason.
        details: further sentences.
        belief: where the change may be, and how likely it is there; the likeliest first.
    """

    axis: str
    sentence: str
    decided: bool
    link: str = ""
    tried: Sequence[Tried] = ()
    untestable: Sequence[str] = ()
    details: Sequence[str] = ()
    belief: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The standalone script, and what came of running it.

    Args:
        script: its text; "" where none could be written.
        cell: that it ran in.
        gpu: model of the GPU that it ran on, or "".
        status: its exit status.
        printed: what it wrote.
        seconds: wall time.
        refused: why there is no script that has shown the failure, or "".
    """

    script: str = ""
    cell: str = ""
    gpu: str = ""
    status: int | None = None
    printed: str = ""
    seconds: float = 0.0
    refused: str = ""

    @property
    def shown(self) -> bool:
        """Whether the script ran and the failure showed as promised."""
        return bool(self.script) and self.status == 1 and not self.refused


@dataclass(frozen=True, kw_only=True)
class CellFacts:
    """What a cell's process really imported, and where it ran."""

    cell: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it.

    Args:
        test: pytest's name of the target test.
        revision: of the subject.
        origin: where the subject came from, or "".
        rates: trials with seeds of their own in one process; the rate that is meant without further words.
        other_rates: of other modes, never mixed with those.
        elsewhere: other tests and revisions in the ledger, a line each.
        digests: of the cells' images or environments.
        notes: what a reader must know, a sentence each.
    """

    test: str
    revision: str
    origin: str = ""
    rates: Sequence[CellRate] = ()
    other_rates: Sequence[CellRate] = ()
    pairing: Pairing = Pairing()
    anatomy: Anatomy = Anatomy()
    searches: Sequence[Search] = ()
    diagnosis: Diagnosis = Diagnosis()
    proof: Proof = Proof()
    environments: Sequence[CellFacts] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Sequence[str] = ()
    notes: Sequence[str] = ()
    kit: str = ""

    @property
    def gpus(self) -> list[str]:
        """GPU models, "" for the CPU, in order."""
        return sorted({row.series.gpu for row in self.rates})

    @property
    def main_rates(self) -> Sequence[CellRate]:
        """The rates that the title is about: of seeds in one process, else of the next mode that ran."""
        for mode in (Mode.SEEDS, Mode.FRESH, Mode.REPEAT, Mode.REPLAY):
            rows = [
                row for row in (*self.rates, *self.other_rates) if row.series.mode is mode and row.rate.trials
            ]
            if rows:
                return rows
        return self.rates
