"""Next steps as they are printed: they run as they stand, and are about the same ledger and matrix."""

import ast
import functools
import re
import shlex
from pathlib import Path

import click
import pytest

from repro import cli
from repro.cli.options import SharedOption
from repro.cli.steps import COMMAND, completed, context_of, named_options

SOURCES = Path(cli.__file__).parents[1]
VALUES = {
    "--matrix": "other matrix.yaml",
    "--profile": "gpu",
    "--only": "torch2.11*",
    "--state": "of mine/.repro",
    "--engine": "host",
    "--gpu": "none",
    "--subject": "../kernels",
    "--test": "test_op[float32-a b]",
    "--test-file": "tests/test_op.py",
    "--trials": "30",
    "--half-width": "0.02",
    "--mode": "fresh",
    "--first-seed": "7",
    "--jobs": "3",
    "--fresh": True,
}
"""A value for every option that commands share, by its name."""


def shared(name):
    return [each for each in cli.load(name).params if isinstance(each, SharedOption)]


def given(name):
    """The words of a command with all its shared options, each with a value of its own."""
    words = [name, *(["other.sqlite"] if name == "merge" else [])]
    for option in shared(name):
        value = VALUES[option.opts[0]]
        words += [option.opts[0]] if value is True else [option.opts[0], value]
    return words


def parsed(line):
    """The values of a command line, by the names of its options; click refuses what is wrong with it."""
    program, name, *rest = shlex.split(line)
    assert program == "repro"
    context = cli.load(name).make_context(name, [*rest, *(["other.sqlite"] if name == "merge" else [])])
    return {option.opts[0]: context.params[option.name] for option in cli.load(name).params}


@pytest.mark.parametrize("this", cli.COMMANDS)
def test_every_command_takes_over_what_it_shares_with_the_one_before(this):
    for following in cli.COMMANDS:
        check_what_is_taken_over(this, following)


def check_what_is_taken_over(this, following):
    context = context_of(given(this))
    step = completed(f"first `repro {following}`; then something else", context)
    (line,) = re.fullmatch(r"first `(.*)`; then something else", step).groups()
    mine = {option.opts[0]: context.params[option.name] for option in shared(this)}
    kept = {option.opts[0] for option in shared(following)} & set(mine)
    if this == following:
        kept -= {"--fresh"}
    values = parsed(line)
    assert {name: values[name] for name in kept} == {name: mine[name] for name in kept}
    others = [option for option in cli.load(following).params if option.opts[0] not in kept]
    assert not any(option.opts[0] in shlex.split(line) for option in others)


def test_where_and_what_is_shared_by_all_commands_that_have_it():
    for name in cli.COMMANDS:
        own = {option.opts[0] for option in cli.load(name).params} - {each.opts[0] for each in shared(name)}
        about = {"--matrix", "--profile", "--only", "--state", "--engine", "--gpu", "--test", "--test-file"}
        assert not own & about, name


def test_nothing_is_added_where_nothing_was_given():
    text = "`repro status` lists the failing seeds; `repro matrix --mode fresh` gives each its own process"
    assert completed(text, context_of(["matrix"])) == text


@pytest.mark.parametrize(
    ("line", "step", "told"),
    [
        (
            "diagnose --budget 90m --trials 5 --state s --json",
            "repro diagnose --trials 50, or --only with a cell where it fails",
            "repro diagnose --trials 50 --budget 1h30m --state s, or --only with a cell where it fails",
        ),
        (
            "matrix --fresh --trials 20 --engine host",
            "more trials: `repro matrix --trials 1000 --half-width 0.01`",
            "more trials: `repro matrix --trials 1000 --half-width 0.01 --engine host`",
        ),
        ("clean --no-images --results --dry-run", "repro clean", "repro clean --results --no-images"),
        ("export --junit --out x --state s", "repro export", "repro export --junit --out x --state s"),
        (
            "bisect --trials 9 --fresh --only '*'",
            "repro matrix, and this",
            "repro matrix --only '*', and this",
        ),
        ("status --state s", "repro clean --state DIR", "repro clean --state DIR"),
        (
            "init --test a --matrix m",
            "`repro init --force` too",
            "`repro init --force --test a --matrix m` too",
        ),
        (
            "matrix --only a --only 'b c'",
            "`repro doctor`, and .repro matrix, repro matrixes",
            "`repro doctor --only a --only 'b c'`, and .repro matrix, repro matrixes",
        ),
    ],
)
def test_a_step_in_words(line, step, told):
    context = context_of(shlex.split(line))
    assert completed(step, context) == told
    assert completed(told, context) == told


# What is written in the kit --------------------------------------------------------------------------------


@functools.cache
def texts():
    """Every text in the kit's sources, with X for what is put in while it runs; not what explains code."""
    sources = {path.relative_to(SOURCES): path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")}
    return [(path, text) for path in sorted(sources) for text in said_in(ast.parse(sources[path]))]


def said_in(tree):
    nodes = list(ast.walk(tree))
    apart = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    apart |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield node.value


def test_every_command_that_the_kit_names_knows_the_options_that_stand_there():
    seen = 0
    for path, text in texts():
        for found in COMMAND.finditer(text):
            rest = text[found.end() :]
            _, end = named_options(found[1], rest)
            assert not rest[end:].lstrip().startswith("-"), (path, text)
            seen += 1
    assert seen > 60


def test_every_command_that_the_kit_names_exists():
    for path, text in texts():
        for word in re.findall(r"`repro ([a-z][a-z-]*)", text):
            assert word in {*cli.COMMANDS, "kit"}, (path, text)


def test_an_error_leaves_with_a_step_that_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli._guarded(["status", "--state", "of mine"]) == 2
    assert capsys.readouterr().err.endswith("  next: repro matrix --state 'of mine'\n")
    assert cli._guarded(["bisect", "--matrix", "m.yaml", "--test", "t[a]", "--trials", "7"]) == 2
    assert "  next: `repro init --matrix m.yaml --test 't[a]'` writes one " in capsys.readouterr().err


def test_a_line_that_runs_gets_its_own_options_back():
    with click.Context(cli.cli), context_of(["plan", "--fresh", "--trials", "30"]):
        assert completed("repro matrix") == "repro matrix --trials 30 --fresh"
