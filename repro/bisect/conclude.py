"""From what was seen to the answer."""

from __future__ import annotations

from repro.bisect.answer import Answer
from repro.bisect.trail import Trail
from repro.search import Kind, RateEstimate, Verdict


def changed(trail: Trail, verdict: Verdict, method: str) -> Answer:
    """The verdict in the line's own places, with the rates of trials that have seeds of their own."""
    if verdict.low is None or verdict.high is None:
        return unchanged(trail, verdict.kind, confidence=verdict.confidence, method=method)
    low, high = trail.low + verdict.low, trail.low + verdict.high
    confidence, evidence = trail.question.confidence, trail.evidence
    before, after = evidence.rate(0, low, confidence), evidence.rate(high, len(trail.candidates), confidence)
    kind: Kind = verdict.kind
    if method == "replay" and kind in ("appears", "rises"):
        kind = "rises" if before.failed else "appears"
    first = None if verdict.first_bad is None else trail.low + verdict.first_bad
    return _answer(trail, kind, method, verdict.confidence, (before, after), place=(first, low, high))


def unchanged(
    trail: Trail, kind: Kind, *, confidence: float = 0.0, method: str = "rates", reproduced: bool = True
) -> Answer:
    """An answer that names no place."""
    asked = trail.question.confidence
    whole = trail.evidence.rate(0, len(trail.candidates), asked)
    ends = [trail.evidence.rate(end, end, asked) for end in (trail.low, trail.high)]
    rates = (whole, whole) if kind in ("throughout", "absent") else (ends[0], ends[1])
    return _answer(trail, kind, method, confidence, rates, reproduced=reproduced)


def _answer(
    trail: Trail,
    kind: Kind,
    method: str,
    confidence: float,
    rates: tuple[RateEstimate, RateEstimate],
    *,
    place: tuple[int | None, int | None, int | None] = (None, None, None),
    reproduced: bool = True,
) -> Answer:
    findings = trail.evidence.findings
    return Answer(
        axis=trail.tryout.line.axis,
        candidates=trail.candidates,
        kind=kind,
        first_bad=place[0],
        low=place[1],
        high=place[2],
        confidence=confidence,
        rate_before=rates[0],
        rate_after=rates[1],
        method=method,
        trials=trail.tryout.trials,
        builds=len(trail.tryout.prepared),
        seen=trail.evidence.seen(),
        findings=[findings[index] for index in sorted(findings)],
        belief=list(trail.belief),
        oldest=trail.low,
        newest=trail.high,
        reproduced=reproduced,
        final=not trail.over,
        notes=list(trail.notes),
    )
