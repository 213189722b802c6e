"""Tables without a terminal: the lines of one that is wide enough, and quick with thousands of rows."""

import io
import time

import pytest
from rich.console import Console

from repro import ui

TABLES = {
    "plain": (("cell", "trials>"), [("torch2.9", "200"), ("t", "1")]),
    "crossed": (("cell", "minutes>", "why"), [("torch2.9 ×", "~0.3", "±5 %"), ("a", "10.5", "")]),
    "wide": (("name", "n>"), [("日本語", "1"), ("ab", "222")]),
    "lines": (("name", "n>", "what"), [("a\nbcd\ne", "1", "one\ntwo"), ("x", "2", "")]),
    "markup": (("name", "what"), [("[red]x[/red]", "\\[a]"), ("test_a[float32]", "")]),
    "control": (("name", "what"), [("a\x07b", "c\rd")]),
    "empty": (("a", "b>"), []),
    "empty cells": (("a", "b"), [("", ""), ("x", "")]),
}


def drawn(columns, rows):
    """What rich draws on a terminal that is wide enough."""
    console = Console(width=400, highlight=False, file=io.StringIO())
    console.print(ui.make_table(columns, rows))
    return "\n".join(line.rstrip() for line in console.file.getvalue().rstrip().splitlines()) + "\n\n"


@pytest.mark.parametrize("name", TABLES)
def test_as_rich_would_draw_it(name, capsys):
    ui.print_table(*TABLES[name])
    assert capsys.readouterr().out == drawn(*TABLES[name])


def test_thousands_of_rows(capsys):
    rows = [(f"torch2.{number}.0-triton3.7.1 ×", str(number), "±") for number in range(20_000)]
    began = time.process_time()
    ui.print_table(("cell", "trials>", "why"), rows)
    seconds = time.process_time() - began
    assert capsys.readouterr().out.count("\n") == 20_000 + 4
    assert seconds < 4, "rich takes forty seconds"
