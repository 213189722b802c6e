"""A rare draw: the test fails for certain values that its random numbers take now and then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, ruled_out, supported, untested
from repro.diagnose.shots import Shot
from repro.stats import fisher
from repro.ui import count

NAME = "a rare draw"
ADVICE = "handle the value that is named, or say in the test that it is out of bounds"
CHANCE = 1e-3
FEATURES = ("value", "text", "min", "max", "size")


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A property of one draw that failing trials have and passing ones lack."""

    said: str
    failing: int
    passing: int


def weigh(evidence: Evidence) -> Cause:
    """Look for a drawn value, or a range of them, that the failing trials share and the passing ones lack."""
    failing = [shot for shot in evidence.watched if shot.failed]
    passing = [shot for shot in evidence.watched if shot.outcome.counts and not shot.failed]
    if not failing or not passing:
        return untested(
            NAME, evidence.missing.get("draws", "no failing and passing trials were watched as they drew")
        )
    if not any(shot.drawn for shot in evidence.watched):
        return ruled_out(NAME, "the test draws nothing from a generator that follows the seed")
    again = evidence.fails_again
    if again is not None and again < 1.0:
        return ruled_out(
            NAME,
            f"failing seeds fail again in {100 * again:.0f} % of their runs: the draws alone do not decide",
        )
    found = list(_features(failing, passing))
    if not found:
        told = f"no single draw tells {count(len(failing), 'failing trial')} from {len(passing)} passing ones"
        return ruled_out(NAME, told)
    return _decided(found, failing, passing)


def _decided(found: Sequence[Feature], failing: Sequence[Shot], passing: Sequence[Shot]) -> Cause:
    best = min(found, key=lambda each: each.passing)
    return supported(
        NAME,
        1.0,
        f"{best.said} in all {count(len(failing), 'failing trial')} that were watched, and in"
        f" {best.passing} of {len(passing)} passing ones",
    )


def _features(failing: Sequence[Shot], passing: Sequence[Shot]) -> Iterator[Feature]:
    """Properties of draws that all failing trials have and hardly a passing one has, beyond chance."""
    draws = min(len(shot.drawn) for shot in failing)
    tried = max(1, draws * 3)
    for place in range(draws):
        for name in FEATURES:
            ours = [shot.drawn[place].get(name) for shot in failing]
            theirs = [shot.drawn[place].get(name) for shot in passing if len(shot.drawn) > place]
            if any(value is None for value in ours):
                continue
            where = (
                f"draw {place} ({failing[0].drawn[place]['function']} at {failing[0].drawn[place]['where']})"
            )
            for said, same in _ranges(ours, theirs):
                chance = fisher(len(ours), len(ours), same, len(passing))
                if same <= 0.02 * len(passing) and chance * tried < CHANCE:
                    yield Feature(said=f"{where}: {name} {said}", failing=len(ours), passing=same)


def _ranges(ours: Sequence[object], theirs: Sequence[object]) -> Iterator[tuple[str, int]]:
    """One value that all share, or the range that they lie in, with how many others lie there, too."""
    if len(set(map(str, ours))) == 1:
        yield f"is {ours[0]}", sum(str(value) == str(ours[0]) for value in theirs)
        return
    different = set(map(str, ours))
    if 2 * len(different) <= len(ours):
        yield f"is one of {', '.join(sorted(different))}", sum(str(value) in different for value in theirs)
    numbers = [value for value in ours if isinstance(value, (int, float))]
    if len(numbers) == len(ours):
        low, high = min(numbers), max(numbers)
        inside = sum(isinstance(value, (int, float)) and low <= value <= high for value in theirs)
        yield f"is {low:.9g} to {high:.9g}", inside
