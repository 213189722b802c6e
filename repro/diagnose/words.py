"""A diagnosis in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, Diagnosis, Verdict
from repro.stats import wilson
from repro.ui import count


def conclude(evidence: Evidence, causes: Sequence[Cause]) -> list[str]:
    """What was found, in a few sentences."""
    rate = wilson(evidence.failed, evidence.trials)
    told = [
        f"It fails in {evidence.failed} of {evidence.trials} trials"
        f" ({100 * evidence.failed / evidence.trials:.2g} %;"
        f" {100 * rate.low:.2g} to {100 * rate.high:.2g} %)."
    ]
    told += _function_of_inputs(evidence)
    known = [cause for cause in causes if cause.verdict is Verdict.SUPPORTED]
    if not known:
        open_ = [cause.name for cause in causes if cause.verdict is Verdict.UNTESTED]
        told.append("No suspected cause is supported." + (f" Untested: {', '.join(open_)}." if open_ else ""))
        return told
    told.append(f"The cause is {known[0].name}: it explains {_percent(known[0])} of what fails.")
    if known[1:]:
        told.append(
            "Also supported: " + ", ".join(f"{each.name} ({_percent(each)})" for each in known[1:]) + "."
        )
    return told


def _function_of_inputs(evidence: Evidence) -> Iterator[str]:
    if not evidence.trials - evidence.failed:
        yield "It fails every time, whatever the seed: there is nothing probable about it."
    if evidence.fails_again is None:
        return
    runs = sum(map(len, evidence.repeats.values()))
    if evidence.steady:
        yield (
            f"It is a function of the inputs: {count(len(evidence.repeats), 'failing seed')} failed in all of"
            f" {count(runs, 'further run')}."
        )
    elif evidence.first_only:
        yield "A seed fails where it is the first of its process, and passes after that."
    else:
        yield (
            f"The inputs alone do not decide: failing seeds failed in {100 * evidence.fails_again:.0f} %"
            f" of {count(runs, 'further run')}."
        )


def _percent(cause: Cause) -> str:
    return f"{100 * (cause.share or 0.0):.0f} %"


def sentences(diagnosis: Diagnosis) -> Iterator[str]:
    """All of it, for a terminal."""
    yield from diagnosis.conclusion
    for verdict in Verdict:
        causes = [cause for cause in diagnosis.causes if cause.verdict is verdict]
        if causes:
            yield f"\n{verdict.value}:"
        for cause in causes:
            yield f"  {cause.name}" + (f" ({_percent(cause)})" if cause.share is not None else "")
            yield from (f"    {line}" for line in cause.evidence)
    if diagnosis.minimized:
        yield "\nthe smallest case that fails:"
        yield from (f"  {line}" for line in diagnosis.minimized)
    if diagnosis.advice:
        yield "\nwhat to do:"
        yield from (f"  {line}" for line in diagnosis.advice)
    yield f"\nwhat was run ({diagnosis.seconds:.0f} s):"
    yield from (f"  {line}" for line in diagnosis.experiments)


def to_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """All of it as plain values."""
    return asdict(diagnosis)
