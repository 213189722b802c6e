"""What failures look like: signatures, errors, elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
