"""What was shown, in sentences that a maintainer can read, and as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from repro import ui
from repro.config.problems import listing
from repro.stats import Rate
from repro.trial.records import Outcome
from repro.verify.claim import Claim, Evidence, Kind, Way
from repro.verify.looseness import looseness
from repro.verify.verifying import Verified

_OUTCOMES = {
    Outcome.SKIPPED: "the test is skipped",
    Outcome.COMPILE_ERROR: "a kernel does not compile",
    Outcome.CRASHED: "the process dies",
    Outcome.TIMED_OUT: "the test does not end",
    Outcome.TEST_MISSING: "the test is not there",
}


def asked(claim: Claim) -> str:
    """Before anything runs: what the claim needs."""
    low, sure = ui.percent(claim.known.low), ui.percent(claim.confidence)
    return (
        f"as it is, {_rate(claim.known)} fail; 0 failures in {ui.count(claim.needed, 'run')} of the fixed"
        f" side show a rate below {low}: a failure as frequent as that would be seen with {sure}"
    )


def sentences(found: Verified) -> list[str]:
    """The verdict first, then what stands behind it, then what was noticed."""
    told = [_verdict(found), *_about_test(found), *_replays(found.seen), *_pairs(found), _changed(found)]
    return [*told, *_beside(found), *found.notes]


def _verdict(found: Verified) -> str:
    seen, verdict, claim = found.seen, found.verdict, found.claim
    before = f"as it is, {_rate(claim.known)} fail"
    if verdict.kind is Kind.FIXED:
        low, sure = ui.percent(verdict.ruled_out or 0.0), ui.percent(claim.confidence)
        return (
            f"Fixed: 0 failures in {ui.count(verdict.clean, 'run')}; {before}."
            f" That rules out a rate of {low} and above, with {sure} confidence."
        )
    if verdict.kind is Kind.NOT_SHOWN:
        return (
            f"Not shown: no failure in {ui.count(verdict.clean, 'run')}, and the claim needs"
            f" {claim.needed}; {before}. So far a rate of {ui.percent(verdict.ruled_out or 1.0)} and above is"
            " ruled out. The same command goes on."
        )
    if verdict.kind is Kind.FAILS_OTHERWISE:
        return f"Not fixed, it fails otherwise now: {_ways(seen.new_ways)}."
    if verdict.kind is Kind.NEW_FAILURES:
        seeds = ", ".join(map(str, _failing(seen)[:5]))
        return (
            "Not fixed, it makes new failures: the inputs that failed pass, and others fail that had passed"
            f" (seeds {seeds}); fixed, {_rate(verdict.fixed)} fail, {before}."
        )
    if verdict.kind is Kind.FEWER:
        return f"Not fixed, but fewer failures: {_rate(verdict.fixed)} fail; {before}."
    return f"Not fixed: it still fails{_how_often(verdict.fixed)}; {before}."


def _how_often(rate: Rate) -> str:
    return f", {_rate(rate)}" if rate.trials else ""


def _about_test(found: Verified) -> list[str]:
    if not found.changed.test:
        return [] if found.changed.code else ["The fix changes no code: neither the test nor a source file."]
    files = listing(found.changed.test)
    if found.changed.code:
        return [f"The test was changed, too ({files}): what it asked before was not asked of the fixed code."]
    return [
        f"The fix changes the test alone ({files}): this says that the test no longer fails, and nothing of"
        " the code, which is as it was."
    ]


def _replays(seen: Evidence) -> list[str]:
    rows = seen.replayed
    before, after = ([sum(one) for one in zip(*side, strict=True)] for side in _sides(seen))
    if not rows or not before[1]:
        return []
    fixed = f"{after[0]} of {after[1]} fixed" if after[1] else "none could be run fixed"
    inputs = ui.count(len(rows), "failing input")
    return [f"{inputs}, run again in turn: {before[0]} of {before[1]} failed as it is, {fixed}"]


def _sides(seen: Evidence) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]:
    rows = seen.replayed
    return [each.as_is for each in rows] or [(0, 0)], [each.fixed for each in rows] or [(0, 0)]


def _pairs(found: Verified) -> list[str]:
    pairs = found.seen.pairs
    if not pairs.n:
        return []
    p_value = found.verdict.comparison.p_value
    return [
        f"of {ui.count(pairs.n, 'seed')} that both sides ran, {pairs.a_only} failed only as it is,"
        f" {pairs.b_only} only fixed, {pairs.both} on both (McNemar's test, p = {p_value:.2g})"
    ]


def _changed(found: Verified) -> str:
    changed = found.changed
    groups = (("code", changed.code), ("test", changed.test), ("other files", changed.rest))
    return "changed: " + "; ".join(f"{name} {listing(files)}" for name, files in groups if files)


def _beside(found: Verified) -> list[str]:
    beside = found.beside
    if beside is None:
        return []
    told = [
        f"The fix breaks {each.test}: {each.outcome.value}, {each.message or 'without a message'}"
        for each in beside.broken
    ]
    left = f"; the budget left {beside.left} out" if beside.left else ""
    return [*told, f"other tests of the file: {beside.ran} run, {len(beside.broken)} broken by the fix{left}"]


def _ways(found: Counter[Way]) -> str:
    return "; ".join(f"{_way(way)} ({ui.count(number, 'time')})" for way, number in found.most_common(3))


def _way(way: Way) -> str:
    outcome, key = way
    said = _OUTCOMES.get(outcome, "")
    return f"{said or key or outcome.value}" + (f", {key}" if said and key else "")


def _failing(seen: Evidence) -> list[int]:
    return sorted(seed for seed, trial in seen.fixed.items() if trial.outcome is Outcome.FAILED)


def _rate(rate: Rate) -> str:
    share = ui.percent(rate.rate or 0.0)
    return f"{rate.failed} of {rate.trials} ({share}; {ui.percent(rate.low)} to {ui.percent(rate.high)})"


def to_json(found: Verified) -> dict[str, Any]:
    """All of it as plain values."""
    seen, verdict, claim, pairs = found.seen, found.verdict, found.claim, found.seen.pairs
    return {
        "verdict": verdict.kind.value,
        "shown": found.shown,
        "said": sentences(found),
        "cell": found.as_is.target.cell.id,
        "test": found.as_is.target.subject.test,
        "claim": {
            "confidence": claim.confidence,
            "clean_runs_needed": claim.needed,
            "clean_runs": verdict.clean,
            "rate_ruled_out": verdict.ruled_out,
        },
        "as_is": {"revision": found.as_is.target.subject.revision, "rate": claim.known.to_json()},
        "fixed": {
            "revision": found.fixed.target.subject.revision,
            "rate": verdict.fixed.to_json(),
            "new_ways": [
                {"outcome": outcome.value, "signature": key, "times": number}
                for (outcome, key), number in seen.new_ways.most_common()
            ],
            "failing_seeds": _failing(seen),
        },
        "replays": [
            {"seed": each.seed, "as_is": _count(each.as_is), "fixed": _count(each.fixed)}
            for each in seen.replayed
        ],
        "pairs": {
            "as_is_only": pairs.a_only,
            "fixed_only": pairs.b_only,
            "both": pairs.both,
            "neither": pairs.neither,
            "p_value": verdict.comparison.p_value,
        },
        "changed": {
            "code": list(found.changed.code),
            "test": list(found.changed.test),
            "other": list(found.changed.rest),
        },
        "looser": looseness(seen.as_is.values(), seen.fixed.values()),
        "beside": None if found.beside is None else _beside_json(found),
        "notes": list(found.notes),
    }


def _beside_json(found: Verified) -> dict[str, Any]:
    assert found.beside is not None
    return {
        "ran": found.beside.ran,
        "left": found.beside.left,
        "broken": [
            {"test": each.test, "outcome": each.outcome.value, "message": each.message}
            for each in found.beside.broken
        ],
    }


def _count(counts: tuple[int, int]) -> dict[str, int]:
    return {"failed": counts[0], "trials": counts[1]}
