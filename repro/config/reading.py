"""Typed values out of YAML nodes; each function notes what is wrong, and returns None instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from packaging.requirements import InvalidRequirement, Requirement

from repro.config.nodes import Entries, Items, Node, Scalar
from repro.config.problems import Problems, listing, nearest

T = TypeVar("T")

LONGEST = 2000
"""Characters of a text: a path of more can be opened nowhere."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?", re.IGNORECASE)
_SCALE = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Section:
    """One mapping of the file: takes its keys one by one and names those that nobody asked for.

    Args:
        node: the mapping; anything else is a mistake, and reads as an empty mapping.
        name: what to call it in messages, such as "subject".
        problems: takes the mistakes.
        keys: every key that may be there.
    """

    def __init__(self, node: Node | None, name: str, problems: Problems, keys: Iterable[str]) -> None:
        self.name = name
        self.problems = problems
        self.line = node.line if node else 0
        self.broken = node is not None and not isinstance(node, Entries)
        self.entries = node.entries if isinstance(node, Entries) else {}
        if self.broken:
            problems.add(self.line, f"`{name}` is {describe(node)}", f"write keys under it: {listing(keys)}")
        self._refuse_unknown(tuple(keys))

    def _refuse_unknown(self, keys: tuple[str, ...]) -> None:
        for key, (line, _) in self.entries.items():
            if key not in keys:
                near = nearest(key, keys, 1)
                right = f"did you mean {listing(near)}?" if near else f"the keys are {listing(keys)}"
                self.problems.add(line, f"unknown key `{key}` in {self.name}", right)

    def node(self, key: str) -> Node | None:
        """The value of a key, or None where it is not there."""
        return self.entries[key][1] if key in self.entries else None

    def take(self, key: str, read: Callable[[Node, str, Problems], T | None], default: T) -> T:
        """Read the value of a key; the default where it is absent or wrong."""
        node = self.node(key)
        value = read(node, key, self.problems) if node is not None else None
        return default if value is None else value

    def require(self, key: str, right: str) -> None:
        """Note a missing key, unless the section itself is broken."""
        if key not in self.entries and not self.broken:
            self.problems.add(self.line, f"{self.name} has no `{key}`", right)


def describe(node: Node | None) -> str:
    """What a node is, in words."""
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Entries):
        return "a mapping"
    if node is None or node.kind == "null":
        return "empty"
    words = {"str": "text", "bool": "true or false", "timestamp": "a date"}
    return f"{words.get(node.kind, 'a number')} ({node.text})"


def text(node: Node, key: str, problems: Problems) -> str | None:
    """Text that is not empty, without control characters."""
    if isinstance(node, Scalar) and node.kind == "str" and node.text.strip():
        if len(node.text) > LONGEST:
            problems.add(node.line, f"`{key}` has {len(node.text)} characters", f"write {LONGEST} at most")
        elif node.text.isprintable():
            return node.text
        else:
            right = "write plain text"
            problems.add(node.line, f"`{key}` has a line break or control character in it", right)
    elif isinstance(node, Scalar) and node.kind not in ("str", "null"):
        problems.add(node.line, f"`{key}` is {describe(node)}, not text", f'put it in quotes: "{node.text}"')
    else:
        problems.add(node.line, f"`{key}` is {describe(node)}", "write text")
    return None


def texts(node: Node, key: str, problems: Problems) -> tuple[str, ...] | None:
    """A list of texts; a single one stands for a list of one."""
    nodes = node.items if isinstance(node, Items) else [node]
    return tuple(value for item in nodes if (value := text(item, key, problems)) is not None)


def inside(node: Node, key: str, problems: Problems) -> str | None:
    """A path below the subject."""
    value = text(node, key, problems)
    if value is None:
        return None
    if value.startswith(("/", "~", "-")) or ".." in value.split("/"):
        problems.add(
            node.line, f"`{key}`: `{value}` leaves the subject", "write a path relative to the subject"
        )
        return None
    return value.removeprefix("./").rstrip("/") or "."


def insides(node: Node, key: str, problems: Problems) -> tuple[str, ...] | None:
    """A list of paths below the subject."""
    nodes = node.items if isinstance(node, Items) else [node]
    return tuple(value for item in nodes if (value := inside(item, key, problems)) is not None)


def requirements(node: Node, key: str, problems: Problems) -> tuple[str, ...] | None:
    """pip requirements."""
    values = texts(node, key, problems) or ()
    for value in values:
        try:
            Requirement(value)
        except InvalidRequirement:
            problems.add(
                node.line, f"`{key}`: `{value}` is no pip requirement", 'write such as "einops>=0.8"'
            )
    return values


def whole(node: Node, key: str, problems: Problems) -> int | None:
    """A whole number from 1 to a million."""
    if isinstance(node, Scalar) and re.fullmatch(r"[1-9]\d{0,6}", node.text) and int(node.text) <= 10**6:
        return int(node.text)
    problems.add(node.line, f"`{key}` is {describe(node)}", "write a whole number from 1 to 1000000")
    return None


def share(node: Node, key: str, problems: Problems) -> float | None:
    """A number strictly between 0 and 1."""
    if isinstance(node, Scalar) and node.kind in ("int", "float"):
        try:
            value = float(node.text)
        except ValueError:
            value = 0.0
        if 0 < value < 1:
            return value
    problems.add(node.line, f"`{key}` is {describe(node)}", "write a number between 0 and 1, such as 0.95")
    return None


def size(node: Node, key: str, problems: Problems) -> int | None:
    """Bytes out of `8g`, `512m` or a plain number."""
    match = _SIZE.fullmatch(node.text) if isinstance(node, Scalar) and len(node.text) < 20 else None
    if match and (value := int(float(match[1]) * _SCALE[match[2].lower()])) > 0:
        return value
    problems.add(node.line, f"`{key}` is {describe(node)}", "write a size such as 8g or 512m")
    return None


def seconds(node: Node, key: str, problems: Problems) -> float | None:
    """Seconds out of `90s`, `20m`, `1h` or a plain number of seconds."""
    match = _TIME.fullmatch(node.text) if isinstance(node, Scalar) and len(node.text) < 20 else None
    if match and (value := float(match[1]) * _SECONDS[(match[2] or "s").lower()]) > 0:
        return value
    problems.add(node.line, f"`{key}` is {describe(node)}", "write a time such as 90s, 20m or 1h")
    return None
