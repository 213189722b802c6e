"""Every combination that a profile stands for, resolved against stacks.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from repro.config.model import Axes, Choice, Env, Profile, Rule
from repro.stacks import Stacks, version


@dataclass(frozen=True, kw_only=True)
class Combination:
    """Versions and environment of one cell, none of them `pinned` or a range any more."""

    python: str
    torch: str
    triton: str
    build: str
    ptxas: str | None
    env: Env

    def __str__(self) -> str:
        parts = [f"torch {self.torch}", f"triton {self.triton}", self.build, f"Python {self.python}"]
        if self.ptxas is not None:
            parts.append(f"ptxas {self.ptxas}")
        return ", ".join([*parts, *(f"{name}={value}" for name, value in self.env)])


@dataclass(frozen=True, kw_only=True)
class Found:
    """A combination, and what the profile and stacks.yaml say about it.

    Args:
        combination: versions and environment.
        why_out: reason of the rule that leaves it out, or why it cannot exist; "" where it is in.
        why_in: reason of the rule that added it, or "".
    """

    combination: Combination
    why_out: str = ""
    why_in: str = ""


@dataclass(frozen=True, kw_only=True)
class Duplicate:
    """A combination that two explicit values stand for.

    Args:
        combination: what is there twice.
        rule: the include rule that repeats it, or None where the axes do.
    """

    combination: Combination
    rule: Rule | None


def size(profile: Profile, stacks: Stacks) -> int:
    """How many combinations a profile stands for, at most."""
    return sum(_size(axes, stacks) for axes, _ in _blocks(profile))


def _size(axes: Axes, stacks: Stacks) -> int:
    total = 1
    for axis in ("python", "torch", "triton", "cuda", "ptxas"):
        choices: tuple[Choice, ...] = getattr(axes, axis) or ()
        total *= sum(len(_matching(choice, axis, stacks)) for choice in choices)
    return total * len(axes.env or ())


def combine(profile: Profile, stacks: Stacks) -> tuple[list[Found], list[Duplicate]]:
    """All combinations of a profile, oldest stack first, and those that it names twice.

    Overlapping ranges are no duplicates: a range is a set, and says so of itself.
    """
    found: dict[Combination, Found] = {}
    loosely: set[Combination] = set()
    duplicates: list[Duplicate] = []
    for axes, rule in _blocks(profile):
        for combination, loose in _product(axes, stacks):
            here = found.get(combination)
            if here is None or (rule is not None and here.why_out):
                found[combination] = _judge(combination, profile, rule, stacks)
            elif not loose and combination not in loosely:
                duplicates.append(Duplicate(combination=combination, rule=rule))
            if loose:
                loosely.add(combination)
    return sorted(found.values(), key=lambda each: _age(each.combination, stacks)), duplicates


def _blocks(profile: Profile) -> Iterator[tuple[Axes, Rule | None]]:
    """The profile's own axes, then those of each include rule."""
    yield profile.axes, None
    for rule in profile.include:
        yield _completed(rule.axes, profile.axes), rule


def _completed(axes: Axes, profile: Axes) -> Axes:
    """A rule's axes, those that it leaves alone taken from the profile."""
    missing = {name: getattr(profile, name) for name in vars(axes) if getattr(axes, name) is None}
    return replace(axes, **missing)


def _product(axes: Axes, stacks: Stacks) -> Iterator[tuple[Combination, bool]]:
    names = ("python", "torch", "triton", "cuda", "ptxas")
    values = [
        [
            (value, choice.range is not None)
            for choice in getattr(axes, axis)
            for value in _matching(choice, axis, stacks)
        ]
        for axis in names
    ]
    for python, torch, triton, build, ptxas in product(*values):
        release = stacks.torch[torch[0]]
        loose = any(value[1] for value in (python, torch, triton, build, ptxas))
        for env in axes.env or ():
            combination = Combination(
                python=python[0],
                torch=torch[0],
                triton=release.triton if triton[0] == "pinned" else triton[0],
                build=release.default if build[0] == "default" else build[0],
                ptxas=None if ptxas[0] == "bundled" else ptxas[0],
                env=env,
            )
            yield combination, loose


def _matching(choice: Choice, axis: str, stacks: Stacks) -> list[str]:
    if choice.range is None:
        return [choice.text]
    return [known for known in stacks.known(axis) if choice.range.contains(version(known))]


def _judge(combination: Combination, profile: Profile, rule: Rule | None, stacks: Stacks) -> Found:
    """What is impossible stays out even where a rule adds it; a rule that adds beats one that excludes."""
    impossible = stacks.impossible(
        python=combination.python,
        torch=combination.torch,
        triton=combination.triton,
        build=combination.build,
        ptxas=combination.ptxas,
    )
    if rule is not None:
        return Found(combination=combination, why_out=impossible or "", why_in=rule.reason)
    excluded = next((each.reason for each in profile.exclude if _covers(each.axes, combination, stacks)), "")
    return Found(combination=combination, why_out=excluded or impossible or "")


def _covers(axes: Axes, combination: Combination, stacks: Stacks) -> bool:
    release = stacks.torch[combination.torch]
    return (
        _holds(axes.python, combination.python, None)
        and _holds(axes.torch, combination.torch, None)
        and _holds(axes.triton, combination.triton, release.triton)
        and _holds(axes.cuda, combination.build, release.default)
        and _holds(axes.ptxas, combination.ptxas or "bundled", None)
        and (axes.env is None or any(set(env) <= set(combination.env) for env in axes.env))
    )


def _holds(choices: tuple[Choice, ...] | None, value: str, own: str | None) -> bool:
    """Whether any choice takes the value in; `own` is what `pinned` or `default` means here."""
    return choices is None or any(_takes(choice, value, own) for choice in choices)


def _takes(choice: Choice, value: str, own: str | None) -> bool:
    if choice.range is not None:
        return value != "bundled" and choice.range.contains(version(value))
    return choice.text == value or (choice.text in ("pinned", "default") and value == own)


def _age(combination: Combination, stacks: Stacks) -> tuple[object, ...]:
    builds = stacks.builds()
    return (
        version(combination.torch),
        version(combination.triton),
        builds.index(combination.build),
        version(combination.python),
        version(combination.ptxas or "0"),
        combination.env,
    )
