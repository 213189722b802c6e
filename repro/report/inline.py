"""Sentences with code between backticks, as Markdown and as HTML; what a test is called cannot break out."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from repro import ui

_CODE = re.compile(r"`([^`\n]+)`")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$])")
_REFERENCE = re.compile(r"([@#])(?=\w)")


def code(text: str, most: int = 160) -> str:
    """Text as code inside a sentence: on one line, without backticks and control characters."""
    plain = short(text, most).replace("`", "'")
    return f"`{plain}`" if plain else ""


def short(text: str, most: int = 160) -> str:
    """A text's first words on one line; what is far behind them is not even looked at."""
    return ui.one_line(text[: 4 * most], most)


def markdown(sentence: str) -> str:
    """A sentence for GitHub's Markdown: no emphasis, tags, mentions or references but what was meant."""
    parts = _CODE.split(sentence)
    return "".join(f"`{part}`" if index % 2 else _plain(part) for index, part in enumerate(parts))


def cell(sentence: str) -> str:
    """A sentence as a cell of a Markdown table; bars inside of code end a cell, too."""
    parts = _CODE.split(" ".join(sentence.split()))
    return "".join(
        "`{}`".format(part.replace("|", "\\|")) if index % 2 else _plain(part)
        for index, part in enumerate(parts)
    )


def _plain(text: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", "".join(letter if letter.isprintable() else " " for letter in text))
    escaped = escaped.replace("\\<", "&lt;").replace("\\>", "&gt;")
    return _REFERENCE.sub(r"\1<!-- -->", escaped)  # the one way to keep GitHub from notifying people


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; columns named with a trailing `>` are right-aligned."""
    heads = [column.rstrip(">") for column in columns]
    rule = ["--:" if column.endswith(">") else "---" for column in columns]
    return [
        f"| {' | '.join(heads)} |",
        f"| {' | '.join(rule)} |",
        *(f"| {' | '.join(cell(value) for value in row)} |" for row in rows),
    ]


def fence(text: str, language: str = "text") -> list[str]:
    """A block of code that its own backticks cannot end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    return [f"{marks}{language}", *text.rstrip("\n").splitlines(), marks]


def to_html(sentence: str) -> str:
    """A sentence as HTML, escaped."""
    parts = _CODE.split(sentence)
    return "".join(
        f"<code>{html.escape(part)}</code>" if index % 2 else html.escape(part)
        for index, part in enumerate(parts)
    )


def is_link(text: str) -> bool:
    """Whether a text may stand as the target of a link."""
    return text.startswith("https://") and not any(letter in text for letter in " <>\"'`\\|")
