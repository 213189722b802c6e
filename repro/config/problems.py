"""Mistakes in matrix.yaml: collected while reading, shown all at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from repro.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One mistake.

    Args:
        file: the file as the user named it.
        line: counted from 1; 0 where the whole file is meant.
        wrong: what is wrong.
        right: what would be right.
    """

    file: str
    line: int
    wrong: str
    right: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.wrong}\n    {self.right}"


class ConfigError(UsageError):
    """All the mistakes of a matrix.yaml, in the order of their lines.

    Args:
        problems: at least one.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: problem.line)
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        super().__init__(
            f"{count} in {problems[0].file}:\n" + "\n".join(str(problem) for problem in self.problems),
            next_step=f"edit {problems[0].file}, then `repro plan` shows what it means",
        )


class Problems:
    """Collects the mistakes of one file."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)
        self.found: list[Problem] = []

    def add(self, line: int, wrong: str, right: str) -> None:
        """Note a mistake and go on reading."""
        self.found.append(Problem(file=self.file, line=line, wrong=wrong, right=right))

    def raise_if_any(self) -> None:
        """Raise what was found.

        Raises:
            ConfigError: when anything was noted.
        """
        if self.found:
            raise ConfigError(self.found)


def nearest(word: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names that look most like `word`, best first; may be empty."""
    by_folded = {name.casefold(): name for name in known}
    return [by_folded[name] for name in get_close_matches(word.casefold(), by_folded, n=count, cutoff=0.5)]


def listing(names: Iterable[str]) -> str:
    """Names in backquotes, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)
