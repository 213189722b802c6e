"""How often the test would fail with other tolerances, and which bugs it would still catch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repro.diagnose.evidence import Evidence
from repro.diagnose.shots import key
from repro.store import Trial

FACTORS = (1.0, 2.0, 4.0, 10.0, 100.0)


@dataclass(frozen=True, kw_only=True)
class Looser:
    """What would come of tolerances that are multiplied.

    Args:
        atol, rtol: by how much each is multiplied.
        failed, trials: how often the test would fail, computed from the recorded errors.
        missed: bugs that the comparisons that fail would no longer catch.
    """

    atol: float
    rtol: float
    failed: int
    trials: int
    missed: Sequence[str] = ()


def curve(evidence: Evidence) -> list[Looser]:
    """The failure rate for multiples of atol, of rtol, and of both.

    Trials that passed pass with looser tolerances, too. Those that failed are judged by their worst
    elements, sixteen a comparison, whose values are recorded.
    """
    steps = [(atol, rtol) for atol in FACTORS for rtol in FACTORS if 1.0 in (atol, rtol) or atol == rtol]
    counted = len(evidence.recorded)
    return [
        Looser(
            atol=atol,
            rtol=rtol,
            failed=round(
                sum(_fails(trial, atol, rtol) for trial in evidence.recorded) * evidence.failed / counted
            ),
            trials=evidence.trials,
            missed=_missed(evidence, min(atol, rtol)) if atol == rtol else (),
        )
        for atol, rtol in steps
        if counted
    ]


def looser(evidence: Evidence) -> Iterator[str]:
    """The smallest multiple that would do, and what it would cost."""
    both = [each for each in curve(evidence) if each.atol == each.rtol]
    rates = ", ".join(f"{each.failed}/{each.trials} at {each.atol:g}" for each in both)
    yield f"failures with both tolerances multiplied: {rates}"
    enough = next((each for each in both if not each.failed), None)
    if enough is None:
        yield f"{FACTORS[-1]:g} times the tolerances would not be enough"
    elif not _mutants(evidence):
        yield f"{enough.atol:g} times the tolerances would do; what that would miss was not measured"
    else:
        missed = ", ".join(enough.missed) or "none of the bugs that were put in"
        yield f"{enough.atol:g} times the tolerances would do, and would miss: {missed}"


def _fails(trial: Trial, atol: float, rtol: float) -> bool:
    return any(_beyond(one, atol, rtol) for one in trial.comparisons if one.get("passed") is False)


def _beyond(comparison: Mapping[str, Any], atol: float, rtol: float) -> bool:
    """Whether a recorded element is further off than the tolerances allow when multiplied."""
    if "worst" not in comparison:
        return _number(comparison.get("ratio")) > min(atol, rtol)
    allowed = comparison["atol"] * atol, comparison["rtol"] * rtol
    for one in comparison["worst"]:
        actual, expected = _number(one["actual"]), _number(one["expected"])
        if not abs(actual - expected) <= allowed[0] + allowed[1] * abs(expected):
            return True
    return False


def _missed(evidence: Evidence, factor: float) -> list[str]:
    """Bugs whose error would be within the tolerances in every watched comparison that fails now and then."""
    worst: dict[str, float] = {}
    for ratios in _mutants(evidence):
        for name, ratio in ratios.items():
            worst[name] = max(worst.get(name, 0.0), float(ratio))
    return [name for name, ratio in worst.items() if ratio <= factor]


def _mutants(evidence: Evidence) -> list[Mapping[str, float]]:
    recorded = (one for trial in evidence.recorded for one in trial.comparisons)
    fails = {key(one)[0] for one in recorded if one.get("passed") is False}
    return [each["mutants"] for shot in evidence.watched for each in shot.mutants if each["index"] in fails]


def _number(value: object) -> float:
    return float(str(value)) if value is not None else math.nan
