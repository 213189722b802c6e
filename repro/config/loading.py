"""The file as a whole: its sections, and what they mean together."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from repro.config import reading
from repro.config.axes import AXES, axes, rules
from repro.config.model import (
    Axes,
    Choice,
    Limits,
    Matrix,
    Profile,
    Signature,
    SubjectSpec,
    Trials,
)
from repro.config.nodes import Entries, Node, read
from repro.config.problems import Problems
from repro.config.product import Found, combine, size
from repro.config.reading import Section
from repro.stacks import Stacks, stacks

MOST_CELLS = 50_000
MOST_DUPLICATES = 5
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_SECTIONS = ("subject", "trials", "limits", "profiles")
_SUBJECT = (
    *("path", "git", "rev", "files", "python_path", "test_file", "test", "requirements", "signature"),
    "adapter",
)
_TRIALS = ("count", "confidence", "half_width", "block")
_LIMITS = ("memory", "pids", "trial_timeout", "startup_timeout", "build_timeout")
_PROFILE = (*AXES, "include", "exclude", "trials")


def load(path: Path) -> Matrix:
    """Read a matrix.yaml; nothing on disk is touched.

    Raises:
        ConfigError: with every mistake, its line, and what would be right.
    """
    problems = Problems(path)
    root = read(path, problems)
    if root is None:
        problems.raise_if_any()
    section = Section(root, "matrix.yaml", problems, _SECTIONS)
    section.require("subject", "say what is tested: subject: {path: ., test_file: ..., test: ...}")
    section.require("profiles", "say in which versions: profiles: {gpu: {python: ..., torch: ...}}")
    trials = _trials(section.node("trials"), "trials", problems, Trials())
    matrix = Matrix(
        path=path,
        subject=_subject(section.node("subject"), path.absolute().parent, problems),
        trials=trials,
        limits=_limits(section.node("limits"), problems),
        profiles=_profiles(section.node("profiles"), trials, problems),
    )
    problems.raise_if_any()
    return matrix


def _subject(node: Node | None, base: Path, problems: Problems) -> SubjectSpec:
    section = Section(node, "subject", problems, _SUBJECT)
    if node is not None:
        _require_one_place(section)
        section.require("test_file", "name the file with the test, relative to the subject")
        section.require("test", "name the test as pytest does, such as test_a[float32] or TestA::test_b")
    return SubjectSpec(
        base=base,
        path=section.take("path", reading.text, None),
        git=section.take("git", reading.text, None),
        rev=section.take("rev", reading.text, None),
        files=section.take("files", reading.insides, ()),
        python_path=section.take("python_path", reading.insides, ()),
        test_file=section.take("test_file", reading.inside, ""),
        test=section.take("test", reading.text, ""),
        requirements=section.take("requirements", reading.requirements, ()),
        signature=section.take("signature", _signature, Signature()),
        adapter=section.take("adapter", reading.text, None),
    )


def _require_one_place(section: Section) -> None:
    given = [key for key in ("path", "git") if key in section.entries]
    if len(given) == 2:
        line = section.entries["git"][0]
        section.problems.add(line, "subject has both `path` and `git`", "keep the folder or the repository")
    elif not given and not section.broken:
        section.problems.add(
            section.line, "subject has no `path`", "name a folder, or a repository with `git`"
        )


def _signature(node: Node, key: str, problems: Problems) -> Signature:
    section = Section(node, f"subject.{key}", problems, ("exception",))
    return Signature(exception=section.take("exception", reading.text, Signature().exception))


def _trials(node: Node | None, name: str, problems: Problems, default: Trials) -> Trials:
    section = Section(node, name, problems, _TRIALS)
    return Trials(
        count=section.take("count", reading.whole, default.count),
        confidence=section.take("confidence", reading.share, default.confidence),
        half_width=section.take("half_width", reading.share, default.half_width),
        block=section.take("block", reading.whole, default.block),
    )


def _limits(node: Node | None, problems: Problems) -> Limits:
    section = Section(node, "limits", problems, _LIMITS)
    default = Limits()
    return Limits(
        memory=section.take("memory", reading.size, default.memory),
        pids=section.take("pids", reading.whole, default.pids),
        trial_timeout=section.take("trial_timeout", reading.seconds, default.trial_timeout),
        startup_timeout=section.take("startup_timeout", reading.seconds, default.startup_timeout),
        build_timeout=section.take("build_timeout", reading.seconds, default.build_timeout),
    )


def _profiles(node: Node | None, trials: Trials, problems: Problems) -> dict[str, Profile]:
    if node is None:
        return {}
    if not isinstance(node, Entries) or not node.entries:
        right = "write a name and its axes: cpu: {python: ..., torch: ...}"
        problems.add(node.line, f"`profiles` is {reading.describe(node)}", right)
        return {}
    found = {}
    for name, (line, value) in node.entries.items():
        if not _NAME.fullmatch(name):
            problems.add(line, f"`{name[:40]}` is no name for a profile", "use letters, digits, - and _")
        found[name] = _profile(name, line, value, trials, problems)
    return found


def _profile(name: str, line: int, node: Node, trials: Trials, problems: Problems) -> Profile:
    section = Section(node, f"profile {name}", problems, _PROFILE)
    section.require("python", 'write such as python: "3.12"')
    section.require("torch", 'write such as torch: ["2.12.1", "2.13.0"]')
    before = len(problems.found)
    profile = Profile(
        name=name,
        axes=_with_defaults(axes(section, stacks())),
        include=rules(section, "include", stacks()),
        exclude=rules(section, "exclude", stacks()),
        trials=_trials(section.node("trials"), f"trials of profile {name}", problems, trials),
        line=line,
    )
    if len(problems.found) == before and profile.axes.python and profile.axes.torch:
        _check_cells(profile, problems, stacks())
    return profile


def _with_defaults(given: Axes) -> Axes:
    return replace(
        given,
        triton=given.triton if given.triton is not None else (Choice(text="pinned"),),
        cuda=given.cuda if given.cuda is not None else (Choice(text="default"),),
        ptxas=given.ptxas if given.ptxas is not None else (Choice(text="bundled"),),
        env=given.env if given.env is not None else ((),),
    )


def _check_cells(profile: Profile, problems: Problems, known: Stacks) -> None:
    """Note what only shows once the axes are multiplied: too many cells, none, or the same one twice."""
    count = size(profile, known)
    if count > MOST_CELLS:
        wrong = f"profile {profile.name} stands for {count:,} cells"
        problems.add(profile.line, wrong, f"stay below {MOST_CELLS:,}: fewer values, or `include` rules")
        return
    found, duplicates = combine(profile, known)
    for duplicate in duplicates[:MOST_DUPLICATES]:
        line = duplicate.rule.line if duplicate.rule else profile.line
        more = f" (and {len(duplicates) - 1} more such cells)" if len(duplicates) > MOST_DUPLICATES else ""
        wrong = f"profile {profile.name} has the same cell twice: {duplicate.combination}{more}"
        problems.add(line, wrong, "keep one; `pinned` or `default` may name it already")
    if all(each.why_out for each in found):
        problems.add(profile.line, f"profile {profile.name} has no cells left", _why_empty(found))


def _why_empty(found: list[Found]) -> str:
    reasons = list(dict.fromkeys(each.why_out for each in found))
    return f"all {len(found)} are left out: " + "; ".join(reasons[:3]) + ("; ..." if reasons[3:] else "")
