"""What a diagnosis is made of: causes with verdicts, and what speaks for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from repro.adapting import Jump
from repro.diagnose.tolerances import Looser


class Verdict(StrEnum):
    """What the evidence says about a suspected cause."""

    SUPPORTED = "supported"
    RULED_OUT = "ruled out"
    UNTESTED = "untested"


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A suspected cause, weighed.

    Args:
        name: what it is called.
        verdict: what the evidence says.
        evidence: sentences with the numbers that it rests on; for an untested one, what is missing.
        share: of the failing elements (or failing trials, where no elements are compared) that it explains,
            0 to 1; None where it is not supported.
    """

    name: str
    verdict: Verdict
    evidence: Sequence[str]
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Every suspected cause, likeliest first.

    Args:
        test, cell, revision: what was diagnosed.
        failed, trials: how often it failed, from the ledger.
        causes: supported ones first, by share, and among equals the most specific first.
        conclusion: a few sentences.
        advice: what to do about it.
        experiments: what was run, with counts.
        seconds: that it took.
        minimized: the smallest case that fails, a line each, where it was looked for.
        predicted_rate: the failure rate that follows from first principles, or None.
        jumps: where failing elements lie beside jumps of the derivative, by the operator's adapter.
        tolerances: how often it would fail with other tolerances, and which bugs it would still catch.
    """

    test: str
    cell: str
    revision: str
    failed: int
    trials: int
    causes: Sequence[Cause]
    conclusion: Sequence[str] = ()
    advice: Sequence[str] = ()
    experiments: Sequence[str] = ()
    seconds: float = 0.0
    minimized: Sequence[str] = ()
    predicted_rate: float | None = None
    jumps: Sequence[Jump] = ()
    tolerances: Sequence[Looser] = ()

    @property
    def supported(self) -> list[Cause]:
        """The causes that the evidence supports, likeliest first."""
        return [cause for cause in self.causes if cause.verdict is Verdict.SUPPORTED]


def supported(name: str, share: float, *evidence: str) -> Cause:
    """A cause that explains a share of what fails."""
    return Cause(name=name, verdict=Verdict.SUPPORTED, evidence=evidence, share=min(1.0, share))


def ruled_out(name: str, *evidence: str) -> Cause:
    """A cause that the evidence speaks against."""
    return Cause(name=name, verdict=Verdict.RULED_OUT, evidence=evidence)


def untested(name: str, *missing: str) -> Cause:
    """A cause about which nothing is known, and why."""
    return Cause(name=name, verdict=Verdict.UNTESTED, evidence=missing)
