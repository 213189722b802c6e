"""Takes out what identifies people and machines: paths, names, hosts, GPU UUIDs, addresses, secrets.

What is replaced leaves a word that says what stood there, and the last part of a path stays: it is what a
maintainer needs.
"""

from __future__ import annotations

import getpass
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from repro.report.identifying import PATTERN, REPLACE, may_match, shorter_path
from repro.report.model import Proof, Report

_T = TypeVar("_T")

_GENERIC = frozenset(
    [
        "root",
        "user",
        "users",
        "admin",
        "ubuntu",
        "debian",
        "runner",
        "docker",
        "nobody",
        "test",
        "tests",
        "tester",
        "home",
        "build",
        "ci",
        "git",
        "app",
        "dev",
        "work",
        "worker",
        "localhost",
        "localdomain",
        "host",
        "torch",
        "triton",
        "python",
        "cuda",
        "nvidia",
    ]
)
"""Names that say nothing about a person or a machine, and would garble a text if they were replaced."""


@dataclass(frozen=True)
class Names:
    """What this machine and its user are called."""

    home: str = ""
    user: str = ""
    hosts: Sequence[str] = ()
    folders: Sequence[str] = ()


def names_here() -> Names:
    """The names of this machine and of who runs this."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = ""
    host = socket.gethostname()
    return Names(
        home=str(Path.home()), user=user, hosts=(host, host.partition(".")[0]), folders=(str(Path.cwd()),)
    )


@dataclass
class Redactor:
    """Replaces what identifies, and counts what it replaced.

    Args:
        names: of this machine; replaced wherever they stand as words.
        enabled: False leaves every text as it is.
    """

    names: Names = field(default_factory=names_here)
    enabled: bool = True
    found: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        words = {self.names.user: "<user>", **dict.fromkeys(self.names.hosts, "<host>")}
        self._words = {word: mark for word, mark in words.items() if _telling(word)}
        longest = sorted(map(re.escape, self._words), key=len, reverse=True)
        self._own = re.compile(rf"(?<![\w-])(?:{'|'.join(longest)})(?![\w-])") if longest else None
        self._folders = _below([self.names.home, *self.names.folders])

    def text(self, text: str) -> str:
        """A text without what identifies."""
        if not self.enabled or not text:
            return text
        if self._folders and "/" in text:
            text = self._folders.sub(
                lambda match: self._note("path", match[0], shorter_path(match[0], match[1])), text
            )
        if may_match(text):
            text = PATTERN.sub(self._replace, text)
        if self._own and any(word in text for word in self._words):
            text = self._own.sub(self._word, text)
        return text

    def value(self, value: _T) -> _T:
        """A value of plain parts (dataclasses, mappings, sequences, texts) without what identifies."""
        return _mapped(value, self.text) if self.enabled else value

    def _replace(self, match: re.Match[str]) -> str:
        kind, text = str(match.lastgroup), match[0]
        shorter = REPLACE[kind](text)
        return text if shorter == text else self._note(kind, text, shorter)

    def _word(self, match: re.Match[str]) -> str:
        mark = self._words[match[0]]
        return self._note(mark.strip("<>"), match[0], mark)

    def _note(self, kind: str, text: str, instead: str) -> str:
        self.found[kind, text, instead] += 1
        return instead


def _below(folders: Iterable[str]) -> re.Pattern[str] | None:
    """Finds paths in known folders, whose names may hold what the general pattern does not know."""
    known = sorted({re.escape(folder) for folder in folders if folder.count("/") > 1}, key=len, reverse=True)
    return re.compile(rf"({'|'.join(known)})(?![\w.-])(?:/[\w.@%+=,~-]+)*") if known else None


def _telling(word: str) -> bool:
    return len(word) > 2 and word.lower() not in _GENERIC


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of a value with each text changed; names of enumerations stay."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return change(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{each.name: _mapped(getattr(value, each.name), change) for each in fields(value)}
        )
    if isinstance(value, Mapping):
        return {_mapped(key, change): _mapped(each, change) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_mapped(each, change) for each in value)
    return value


def redacted_report(report: Report, redactor: Redactor) -> Report:
    """A report without what identifies; of a script that had to be changed it says that another one ran."""
    clean = redactor.value(report)
    if clean.proof.script == report.proof.script or not report.proof.script:
        return clean
    return replace(clean, proof=_unproven(clean.proof))


def _unproven(proof: Proof) -> Proof:
    return replace(proof, refused="parts of the script were redacted, so this text is not the one that ran")


def said(found: Iterable[tuple[tuple[str, str, str], int]]) -> list[tuple[str, str, str, str]]:
    """What was replaced, as rows: kind, text, what stands there instead, how often."""
    return [(kind, text, instead, str(times)) for (kind, text, instead), times in sorted(found)]
