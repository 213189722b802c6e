"""An answer in sentences that a maintainer can read, and believe."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from repro import ui
from repro.bisect.answer import Answer
from repro.bisect.result import Result
from repro.bisect.tryout import Finding
from repro.search import RateEstimate
from repro.stats import Method
from repro.trial.records import Outcome


def sentences(result: Result) -> list[str]:
    """The verdict first, then what stands behind it, then what was found on the way."""
    answer = result.answer
    told = [_verdict(answer), *_oldest(answer), *_everywhere(result), *_split(result), *_touched(result)]
    told += [f"what was searched: {_searched(answer)}", *_findings(answer), *answer.notes]
    if result.inside is not None:
        told += ["", f"inside the merge {answer.label(answer.high or 0)}:", *sentences(result.inside)]
    elif answer.first_bad is not None and answer.axis == "commit" and _is_merge(answer):
        told.append("this is a merge; --all-parents looks inside it")
    return told


def _is_merge(answer: Answer) -> bool:
    return answer.first_bad is not None and answer.candidates[answer.first_bad].merge


def _verdict(answer: Answer) -> str:
    kind = answer.kind
    if kind == "throughout":
        return f"Nothing changed: it fails throughout, {rate(answer.rate_after)}; {_sure(answer)}."
    if not answer.reproduced:
        return f"Not reproduced: {_clean(answer.rate_after)}. More trials: --trials."
    if kind == "absent":
        return f"It fails nowhere: {_clean(answer.rate_after)}."
    if kind == "inconclusive" or answer.low is None or answer.high is None:
        return f"No answer: {rate(answer.rate_before)} at first and {rate(answer.rate_after)} at last."
    rates = f"{rate(answer.rate_before)} before, {rate(answer.rate_after)} from there on"
    if answer.first_bad is not None:
        how = {
            "appears": "first fails at",
            "rises": "fails more often from",
            "falls": "fails less often from",
        }
        on = "" if kind == "appears" else " on"
        return f"It {how[kind]} {answer.label(answer.first_bad)}{on}: {rates}; {_sure(answer)}."
    place = f"after {answer.label(answer.low)} and not after {answer.label(answer.high)}"
    return f"The failure {_CHANGES[kind]} {place}: {rates}; {_sure(answer)}. {_why_range(answer)}"


_CHANGES = {"appears": "appears", "rises": "becomes more frequent", "falls": "becomes less frequent"}


def _sure(answer: Answer) -> str:
    return f"confidence {ui.percent(answer.confidence)}"


def rate(estimate: RateEstimate) -> str:
    """ "8 of 100 (8.0 %, 3.2 % to 16.1 %)"."""
    if estimate.rate is None:
        return "no trials"
    span = f"{ui.percent(estimate.low)} to {ui.percent(estimate.high)}"
    return f"{estimate.failed} of {estimate.trials} ({ui.percent(estimate.rate)}; {span})"


def _clean(estimate: RateEstimate) -> str:
    told = f"0 of {ui.count(estimate.trials, 'trial')} failed"
    return f"{told}, so a rate above {ui.percent(estimate.high)} is unlikely" if estimate.trials else told


def _why_range(answer: Answer) -> str:
    assert answer.low is not None
    assert answer.high is not None
    inside = range(answer.low + 1, answer.high)
    untestable = [finding for finding in answer.findings if finding.index in inside]
    if inside and len(untestable) == len(inside):
        return f"The {ui.count(len(inside), 'candidate')} in between cannot be tested."
    if not answer.final:
        return "The budget ended the search; the same command goes on."
    return "The trials did not suffice for a name; the same command goes on."


def _oldest(answer: Answer) -> Iterator[str]:
    """A test that was born on the way: the question only makes sense from there on."""
    before = [finding for finding in answer.findings if finding.index == answer.oldest - 1]
    if not before or before[0].outcome is not Outcome.TEST_MISSING:
        return
    first = next((seen.counts for seen in answer.seen if seen.index == answer.oldest), None)
    told = f"The oldest {answer.axis} that has this test is {answer.label(answer.oldest)}"
    if first is not None and first.rated:
        told += f"; it fails there in {first.failed} of {ui.count(first.rated, 'trial')}"
    yield f"{told}. Before that there is nothing to compare with: {before[0].message}."


def _everywhere(result: Result) -> Iterator[str]:
    found = result.everywhere
    if found is None:
        return
    inputs = ui.count(found.inputs, "failing input")
    if found.fails < found.ran:
        yield f"The same {inputs} fail in {found.fails} of {ui.count(found.ran, 'version')}."
        return
    always = "at the same elements every time"
    if not found.same_elements:
        always = "every time, though not always at the same elements"
    cause = {"release": "the compiler or torch", "triton": "Triton", "torch": "torch", "ptxas": "ptxas"}
    yield (
        f"The same {inputs} fail, {always}, in all {found.ran} versions that were tried: a change"
        f" in {cause[result.answer.axis]} is not the reason."
    )


def _split(result: Result) -> Iterator[str]:
    if result.split is not None:
        yield f"Of the release's parts: {result.split.said}."
        for each in result.split.judged:
            like = {True: "as after the change", False: "as before it", None: f"unclear: {each.why}"}
            yield f"  {each.cross.cell.id}: {each.counts.failed} of {each.counts.rated}, {like[each.after]}"


def _touched(result: Result) -> Iterator[str]:
    if result.touched is not None:
        files = [*result.touched.test, *result.touched.kernel, *result.touched.code]
        named = f": {', '.join(files[:6])}{' ...' if len(files) > 6 else ''}" if files else ""
        yield f"It changed {result.touched.words}{named}."
    if result.link:
        yield f"See {result.link}"


def _searched(answer: Answer) -> str:
    ends = f"{answer.label(0)} to {answer.label(len(answer.candidates) - 1)}"
    how = "failing inputs, replayed" if answer.method == "replay" else "failure rates"
    done = f"{ui.count(answer.trials, 'trial')} in {ui.count(answer.builds, 'candidate')}"
    searched = ui.count(len(answer.candidates), "candidate")
    intervals = f"intervals of rates are {Method.ANYTIME.said}"
    return f"{searched}, {ends}, by {how}; {done}, beside what the ledger held; {intervals}"


def _findings(answer: Answer) -> Iterator[str]:
    """Candidates that cannot be tested, in runs of neighbours with the same reason."""
    last = len(answer.candidates) - 1
    for _, group in groupby(answer.findings, key=_reason):
        run = list(group)
        first, end = run[0].index, run[-1].index
        if end == last or answer.newest < first:
            where = f"from {answer.label(first)} on"
        elif first == 0 or end < answer.oldest:
            where = f"up to {answer.label(end)}"
        else:
            where = f"at {answer.label(first)}" + (f" to {answer.label(end)}" if end > first else "")
        yield f"{where}: {run[0].outcome.value}, {run[0].message}"


def _reason(finding: Finding) -> tuple[Outcome, str]:
    return finding.outcome, finding.message[:40]
