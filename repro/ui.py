"""What a person sees: errors, tables, progress. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from repro.errors import ExitCode, ReproError

MOST_DRAWN = 500
"""Rows of a table that is fitted to the width of a terminal; larger ones are printed as to a file."""

GAP = 3

if TYPE_CHECKING:
    from rich.table import Table

    from repro.cells import Cell
    from repro.trial.records import Outcome


def shown(text: str) -> str:
    """A text that a stranger may have written, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in text)


def say(line: str) -> None:
    """Print one line of progress to stderr."""
    print(shown(line), file=sys.stderr, flush=True)


def print_error(error: ReproError) -> None:
    """What happened, why as a rule, and the next command."""
    say(f"error: {error.what}")
    if error.why:
        say(f"  why:  {error.why}")
    if error.next_step:
        say(f"  next: {error.next_step}")


def print_bug(arguments: Sequence[str]) -> None:
    """A fault of the kit itself: one line for the user, the traceback in a file."""
    with tempfile.NamedTemporaryFile("w", prefix="repro-bug-", suffix=".txt", delete=False) as file:
        file.write(f"repro {' '.join(arguments)}\n{sys.version}\n\n{traceback.format_exc()}")
    say(f"error: a fault in the kit itself: {traceback.format_exc().splitlines()[-1]}")
    say("  why:  this should not happen, whatever the input")
    say(f"  next: please report it with {file.name}; nothing that was recorded is lost")


def close_broken_pipe() -> int:
    """The reader of stdout went away (`repro plan | head`): end quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.DONE


def make_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A plain table; columns named with a trailing `>` are right-aligned."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(
            column.rstrip(">"), justify="right" if column.endswith(">") else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(shown(value)) for value in row))
    return table


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print a table to stdout; where stdout is no terminal, as wide as it needs to be and without padding."""
    if title:
        print(shown(title))
    if sys.stdout.isatty() and len(rows) <= MOST_DRAWN:
        from rich.console import Console

        Console(highlight=False).print(make_table(columns, rows))
        return
    print("\n".join(_plain_lines(columns, rows)) + "\n")


def _plain_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of `make_table` without a width to keep to: many times as fast, for thousands of rows."""
    right = [column.endswith(">") for column in columns]
    cells = [[_lines_of(value) for value in row] for row in ([name.rstrip(">") for name in columns], *rows)]
    widths = [max(_width(line) for lines in column for line in lines) for column in zip(*cells, strict=True)]
    yield ""
    for number, row in enumerate(cells):
        for parts in zip_longest(*row, fillvalue=""):
            yield _joined(parts, widths, right)
        if number == 0:
            yield " " + "─" * (sum(widths) + GAP * (len(widths) - 1))


def _lines_of(value: str) -> list[str]:
    return [value] if value.isprintable() else shown(value).expandtabs(8).split("\n")


def _joined(parts: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    filled = (
        " " * (width - _width(part)) + part if to_right else part + " " * (width - _width(part))
        for part, width, to_right in zip(parts, widths, right, strict=True)
    )
    return (" " + (" " * GAP).join(filled)).rstrip()


def _width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def percent(share: float) -> str:
    """0.0825 as "8.2 %"; small shares keep two significant digits."""
    value = 100 * share
    if value == 0 or value >= 9.95:
        return f"{value:.0f} %" if value in (0, 100) else f"{value:.1f} %"
    return f"{value:.2g} %" if value < 1 else f"{value:.1f} %"


def duration(seconds: float) -> str:
    """Seconds as "45 s", "3 min", "2 h 5 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def cell_name(cell: Cell) -> str:
    """A cell's id, marked where it is a crossed one."""
    return cell.id + (" ×" if cell.crossed else "")


def outcomes(counts: Mapping[Outcome, int]) -> str:
    """ "3 CRASHED, 1 TIMED_OUT"."""
    return ", ".join(f"{number} {outcome.value}" for outcome, number in sorted(counts.items()))


def one_line(text: str, most: int = 160) -> str:
    """A text's first words, on one line and without control characters."""
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def count(number: int, noun: str) -> str:
    """ "1 cell", "2 cells", "2 processes"."""
    return f"{number} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """ "cells", "processes"."""
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


def display_path(path: Path) -> str:
    """A path relative to the current folder where it lies below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
