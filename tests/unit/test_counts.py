"""How many there are of something: the singular of one, in every text that the kit prints."""

import ast
from pathlib import Path

import pytest

import repro
from repro import ui
from repro.report.words import counted

SOURCES = Path(repro.__file__).parent
NOUNS = {
    "candidates", "cells", "commits", "comparisons", "elements", "failures", "images", "inputs", "jobs",
    "kernels", "processes", "runs", "seeds", "tests", "trials", "versions", "wheels",
}  # fmt: skip
APART = ("trial", "inspect", "diagnose", "minimize")
"""Where this is not looked for: `trial` imports nothing of the kit, the others count runs by the dozen."""


@pytest.mark.parametrize(
    ("number", "noun", "told"),
    [(0, "cell", "0 cells"), (1, "cell", "1 cell"), (2, "cell", "2 cells"), (2, "process", "2 processes")],
)
def test_a_count(number, noun, told):
    assert ui.count(number, noun) == told
    assert counted(number, noun) == told


def test_thousands_are_apart_in_a_report():
    assert (counted(12_345, "trial"), counted(12_345)) == ("12,345 trials", "12,345")


SEVERAL = (
    "in all {found.ran} versions that were tried",  # both ends at least
    "{len(cells)} cells: a workflow's matrix",  # more than a workflow may have
    "stands for {count:,} cells",  # more than a matrix may have
    "ran {used.threads} processes and threads",  # more than are allowed
    "the file has {len(found)} tests of that name",
    "in some of {found.cells} cells",  # they are held against each other
    "in each of {len(failing)} cells",  # where several ran
    "{deaths} processes died in a row",
    "{failed} failures in {trials} trials",  # a ValueError, for programmers
    "{clean_runs} runs, confidence",  # another
)
"""Texts that are only told of several."""


def plurals(tree):
    """Numbers that are put before a plural whatever they are; names of constants aside."""
    for text in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
        for value, after in zip(text.values, text.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            word = after.value[1:].replace(":", " ").replace(",", " ").replace(";", " ").split(" ")[0]
            constant = isinstance(value.value, ast.Name) and value.value.id.isupper()
            if after.value.startswith(" ") and word in NOUNS and not constant:
                yield text.lineno, ast.unparse(text)


def test_a_number_before_a_noun_is_told_by_the_one_who_counts():
    read = {path.relative_to(SOURCES): path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")}
    found = [
        (path, *each)
        for path, source in read.items()
        if path.parts[0] not in APART and path.stem not in APART
        for each in plurals(ast.parse(source))
    ]
    assert [each for each in found if not any(several in each[2] for several in SEVERAL)] == []
