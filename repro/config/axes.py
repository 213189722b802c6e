"""The axes of a profile and its rules: versions, version ranges, builds and environments."""

from __future__ import annotations

import re
from bisect import bisect

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from repro.config.model import Axes, Choice, Env, Rule
from repro.config.nodes import Entries, Items, Node, Scalar
from repro.config.problems import Problems, listing
from repro.config.reading import Section, describe, text
from repro.stacks import FILE, Stacks, version

AXES = ("python", "torch", "triton", "cuda", "ptxas", "env")
WORDS = {"triton": "pinned", "cuda": "default", "ptxas": "bundled"}
"""What an axis takes beside versions: the stack's own value."""

_EXAMPLES = {"python": "3.12", "torch": "2.13.0", "triton": "3.7.1", "cuda": "cu126", "ptxas": "12.8"}
_RANGE = re.compile(r"\s*[<>=!~]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def axes(section: Section, stacks: Stacks) -> Axes:
    """Every axis that a section names; the others are None."""
    return Axes(
        python=_choices(section, "python", stacks),
        torch=_choices(section, "torch", stacks),
        triton=_choices(section, "triton", stacks),
        cuda=_choices(section, "cuda", stacks),
        ptxas=_choices(section, "ptxas", stacks),
        env=_environments(section),
    )


def rules(section: Section, key: str, stacks: Stacks) -> tuple[Rule, ...]:
    """The list under `include` or `exclude`."""
    node = section.node(key)
    if node is None:
        return ()
    if not isinstance(node, Items):
        section.problems.add(
            node.line, f"`{key}` is {describe(node)}", "write a list of rules: `- torch: ...`"
        )
        return ()
    return tuple(rule for item in node.items if (rule := _rule(item, key, section, stacks)) is not None)


def _rule(node: Node, key: str, parent: Section, stacks: Stacks) -> Rule | None:
    section = Section(node, f"a rule of {parent.name}.{key}", parent.problems, (*AXES, "reason"))
    section.require("reason", 'say why, in words: reason: "..."')
    rule = Rule(axes=axes(section, stacks), reason=section.take("reason", text, ""), line=section.line)
    if not section.broken and not set(section.entries) & set(AXES):
        section.problems.add(section.line, f"{section.name} names no axis", f"write one of {listing(AXES)}")
        return None
    return rule


def _choices(section: Section, axis: str, stacks: Stacks) -> tuple[Choice, ...] | None:
    node = section.node(axis)
    if node is None:
        return None
    nodes = node.items if isinstance(node, Items) else [node]
    if not nodes:
        section.problems.add(node.line, f"`{axis}` is an empty list", f'write such as ["{_EXAMPLES[axis]}"]')
    found: dict[str, Choice] = {}
    for item in nodes:
        choice = _choice(item, axis, section.problems, stacks)
        if choice is not None and choice.text in found:
            section.problems.add(item.line, f"`{axis}`: `{choice.text}` is there twice", "keep one")
        elif choice is not None:
            found[choice.text] = choice
    return tuple(found.values())


def _choice(node: Node, axis: str, problems: Problems, stacks: Stacks) -> Choice | None:
    if not isinstance(node, Scalar) or node.kind != "str":
        _not_text(node, axis, problems)
        return None
    if node.text == WORDS.get(axis):
        return Choice(text=node.text)
    if axis != "cuda" and _RANGE.match(node.text):
        return _range(node, axis, problems, stacks)
    if axis == "cuda":
        return _known(node, axis, node.text, problems, stacks)
    return _release(node, axis, problems, stacks)


def _not_text(node: Node, axis: str, problems: Problems) -> None:
    if isinstance(node, Scalar) and node.kind in ("int", "float"):
        becomes = f"{float(node.text):g}" if re.fullmatch(r"\d{1,6}\.\d{1,6}", node.text) else node.text
        meant = f"the number {becomes}" if becomes != node.text else "a number, not a version"
        problems.add(
            node.line, f"`{axis}`: {node.text} without quotes is {meant}", f'put it in quotes: "{node.text}"'
        )
    else:
        right = f'write text such as "{_EXAMPLES[axis]}"'
        problems.add(node.line, f"`{axis}`: one of its values is {describe(node)}", right)


def _range(node: Scalar, axis: str, problems: Problems, stacks: Stacks) -> Choice | None:
    try:
        specifier = SpecifierSet(node.text)
    except InvalidSpecifier:
        right = f'write a range such as ">={_EXAMPLES[axis]}"'
        problems.add(node.line, f"`{axis}`: `{node.text}` is no version range", right)
        return None
    if not any(specifier.contains(known) for known in stacks.known(axis)):
        problems.add(
            node.line, f"`{axis}`: no known version is within `{node.text}`", _known_span(axis, stacks)
        )
        return None
    return Choice(text=node.text, range=specifier)


def _release(node: Scalar, axis: str, problems: Problems, stacks: Stacks) -> Choice | None:
    try:
        version(node.text)
    except InvalidVersion:
        word = f" or `{WORDS[axis]}`" if axis in WORDS else ""
        right = f'write a version such as "{_EXAMPLES[axis]}"{word}'
        problems.add(node.line, f"`{axis}`: `{node.text}` is no version", right)
        return None
    return _known(node, axis, node.text, problems, stacks)


def _known(node: Scalar, axis: str, value: str, problems: Problems, stacks: Stacks) -> Choice | None:
    known = stacks.known(axis)
    if axis == "ptxas" and re.fullmatch(r"\d+\.\d+", value):
        value = stacks.newest_ptxas(value)
    if value in known:
        return Choice(text=value)
    near = [] if axis == "cuda" else _neighbours(value, known)
    right = f"did you mean {listing(near)}? " if near else ""
    what = "build" if axis == "cuda" else "version"
    problems.add(node.line, f"`{axis}`: there is no {what} `{value}`", f"{right}{_known_span(axis, stacks)}")
    return None


def _neighbours(value: str, known: tuple[str, ...]) -> list[str]:
    """The releases of that line, else the one before and the one after; none beyond the newest."""
    line = [release for release in known if release.startswith(f"{value}.")]
    after = bisect([version(release) for release in known], version(value))
    return line or (list(known[max(0, after - 1) : after + 1]) if after < len(known) else [])


def _known_span(axis: str, stacks: Stacks) -> str:
    known = stacks.known(axis)
    if axis == "cuda":
        return f"builds are `default`, {listing(known)}"
    return f"the kit knows `{known[0]}` to `{known[-1]}`; a newer one is a row in repro/{FILE.name}"


def _environments(section: Section) -> tuple[Env, ...] | None:
    node = section.node("env")
    if node is None:
        return None
    nodes = node.items if isinstance(node, Items) else [node]
    if not nodes:
        section.problems.add(
            node.line, "`env` is an empty list", "leave it out, or write [{}, {NAME: value}]"
        )
    found: dict[Env, None] = {}
    for item in nodes:
        env = _environment(item, section.problems)
        if env in found:
            section.problems.add(item.line, "`env`: the same variables are there twice", "keep one")
        elif env is not None:
            found[env] = None
    return tuple(found)


def _environment(node: Node, problems: Problems) -> Env | None:
    if not isinstance(node, Entries):
        right = "write a mapping such as {TRITON_DEFAULT_FP_FUSION: 0}"
        problems.add(node.line, f"`env`: one of its values is {describe(node)}", right)
        return None
    pairs = []
    for name, (line, value) in node.entries.items():
        if not _VARIABLE.fullmatch(name):
            problems.add(line, f"`env`: `{name}` is no name of a variable", "use letters, digits and _")
        elif not isinstance(value, Scalar) or value.kind == "null" or not value.text.isprintable():
            problems.add(value.line, f"`env`: `{name}` is {describe(value)}", f'write such as {name}: "1"')
        else:
            # Whatever YAML takes the text for (0, true, 1e3), a variable is the text as written.
            pairs.append((name, value.text))
    return tuple(sorted(pairs))
