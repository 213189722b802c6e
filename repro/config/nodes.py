"""YAML as a tree that remembers lines.

Only the syntax is YAML's: no Python object is ever made from a tag, and a scalar keeps the text that was
written, so that `3.10` can be told from `3.1`. Anchors and aliases are refused: a short file with them can
stand for a huge one, and matrix.yaml is easier to read without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from yaml.reader import Reader
from yaml.resolver import Resolver

from repro.config.problems import Problems, listing

MOST_BYTES = 1_000_000
DEEPEST = 20
_STANDARD = "tag:yaml.org,2002:"
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER = Resolver()


@dataclass(frozen=True)
class Scalar:
    """A single value: its text as written, and `str`, `int`, `float`, `bool`, `null` or `timestamp`."""

    line: int
    text: str
    kind: str


@dataclass(frozen=True)
class Items:
    """A list."""

    line: int
    items: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class Entries:
    """A mapping; its keys are text, each with its own line."""

    line: int
    entries: dict[str, tuple[int, Node]] = field(default_factory=dict)


Node = Scalar | Items | Entries


class _RefusedError(Exception):
    """The file cannot be read any further; the mistake is noted."""


def read(path: Path, problems: Problems) -> Node | None:
    """The tree of a file, or None where a mistake was noted that hides the rest."""
    try:
        text = _text(path, problems)
        return _Tree(problems).build(text)
    except _RefusedError:
        return None
    except yaml.MarkedYAMLError as error:
        # The parser counts a line that is not there when the text ends too early.
        line = min(error.problem_mark.line, text.rstrip().count("\n")) + 1 if error.problem_mark else 0
        problems.add(
            line, f"not YAML: {error.problem or error.context}", "check quotes, colons and indentation"
        )
    except yaml.YAMLError:
        odd = Reader.NON_PRINTABLE.search(text)
        line = text.count("\n", 0, odd.start()) + 1 if odd else 0
        problems.add(line, "not YAML: a character that cannot be printed", "take it out")
    return None


def _text(path: Path, problems: Problems) -> str:
    content = b""
    try:
        if path.stat().st_size > MOST_BYTES:
            problems.add(0, f"larger than {MOST_BYTES:,} bytes", "name the matrix.yaml, not a data file")
            raise _RefusedError
        content = path.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        right = "name another one with --matrix, or write one: the README shows a short one"
        problems.add(0, f"cannot be read: {error.strerror or error}", right)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problems.add(line, f"not UTF-8 text: byte 0x{content[error.start]:02x}", "save it as UTF-8")
    raise _RefusedError


class _Tree:
    """Builds the tree from the parser's events, without recursion into hostile depths."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems

    def build(self, text: str) -> Node:
        events = iter(yaml.parse(text, Loader=_PARSER))
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    self._refuse(event, "a second YAML document", "keep one document; take out the `---`")
                root = self._node(next(events), events, 0)
        if root is None:
            self.problems.add(0, "empty", "write a subject and a profile: the README shows a short one")
            raise _RefusedError
        return root

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Node:
        if depth > DEEPEST:
            self._refuse(
                event, f"nested more than {DEEPEST} levels deep", "no key of matrix.yaml is that deep"
            )
        self._check_plain(event)
        line = _line(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._items(line, events, depth)
        if isinstance(event, yaml.MappingStartEvent):
            return self._entries(line, events, depth)
        assert isinstance(event, yaml.ScalarEvent)
        return Scalar(line, event.value, _kind(event))

    def _items(self, line: int, events: Iterator[yaml.Event], depth: int) -> Items:
        node = Items(line)
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            node.items.append(self._node(event, events, depth + 1))
        return node

    def _entries(self, line: int, events: Iterator[yaml.Event], depth: int) -> Entries:
        node = Entries(line)
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._node(event, events, depth + 1)
            value = self._node(next(events), events, depth + 1)
            self._enter(node, key, value)
        return node

    def _enter(self, node: Entries, key: Node, value: Node) -> None:
        if not isinstance(key, Scalar):
            self.problems.add(key.line, "a key that is no single word", "write `name: value`")
        elif key.text in node.entries:
            first = node.entries[key.text][0]
            self.problems.add(key.line, f"`{key.text}` a second time; it stands on line {first}", "keep one")
        else:
            node.entries[key.text] = (key.line, value)

    def _check_plain(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            self._refuse(event, "a YAML anchor or alias (`&name`, `*name`)", "write the value out")
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            self._refuse(event, f"a YAML tag ({listing([tag])})", "write the plain value")

    def _refuse(self, event: yaml.Event, wrong: str, right: str) -> None:
        self.problems.add(_line(event), wrong, right)
        raise _RefusedError


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _kind(event: yaml.ScalarEvent) -> str:
    resolve: Callable[..., str] = _RESOLVER.resolve
    tag = resolve(yaml.ScalarNode, event.value, event.implicit)
    return tag.removeprefix(_STANDARD)
