"""The text of the standalone script: valid Python, short, and nothing in a name can break out of it."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from report_ledgers import CELLS, flake, write_cell

from repro.cells import Cell
from repro.errors import NotReadyError, UsageError
from repro.report.script.choosing import choose_case
from repro.report.script.text import LINES, Plan, Subject, script_text

CALL = {
    "module": "test_op",
    "imports": [],
    "helpers": [],
    "statements": ["test.test_it(x=1)"],
    "conftests": [],
    "folder": ".",
}
ABOUT = Subject(
    test="test_it[1]",
    test_file="test_op.py",
    revision="abc",
    python_path=(".", ".repro-metadata"),
    environment={},
    versions=["torch 2.11.0"],
    exception="AssertionError",
    source="",
)
BODY = """\
import random
def test_it(x):
    assert x == 2 or random.random() > {below}
"""


def run(folder, text, *arguments):
    (folder / "script.py").write_text(text)
    command = [sys.executable, "script.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(("below", "status"), [(1.0, 1), (-1.0, 0)])
def test_it_exits_as_it_promises(tmp_path, below, status):
    (tmp_path / "test_op.py").write_text(BODY.format(below=below))
    ran = run(tmp_path, script_text(ABOUT, CALL, Plan(seeds=[3])))
    assert ran.returncode == status, ran.stderr
    assert ("seed 3: AssertionError at assert x == 2 or" in ran.stdout) == (status == 1)


def test_another_failure_is_not_the_promised_one(tmp_path):
    (tmp_path / "test_op.py").write_text(
        "def test_it(x):\n    assert x == 5\n    raise ValueError('other')\n"
    )
    other = Subject(**{**vars(ABOUT), "source": "assert x == 9"})
    assert run(tmp_path, script_text(other, CALL, Plan(seeds=[3]))).returncode == 2
    (tmp_path / "test_op.py").write_text("def test_it(x):\n    raise ValueError('other')\n")
    assert run(tmp_path, script_text(ABOUT, CALL, Plan(seeds=[3]))).returncode == 2


@pytest.mark.slow
def test_seeds_give_the_numbers_that_the_plugin_gives(tmp_path):
    (tmp_path / "test_op.py").write_text(
        "import random, torch\ndef test_it(x):\n    assert False, (random.random(), torch.rand(1).item())\n"
    )
    ran = run(tmp_path, script_text(ABOUT, CALL, Plan(seeds=[11])))
    import random

    import torch

    assert (
        str((random.Random(11).random(), torch.rand(1, generator=torch.manual_seed(11)).item())) in ran.stdout
    )


def test_a_file_of_ones_own(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "test_op.py").write_text(BODY.format(below=1.0))
    assert run(tmp_path, script_text(ABOUT, CALL, Plan(seeds=[3])), "elsewhere/test_op.py").returncode == 1


@pytest.mark.parametrize("name", ['"""\nimport os\n"""', "\\", "a'b\"c", "{x}", "\u202e\n\r", 'x"'])
def test_no_name_breaks_out(name):
    about = Subject(**{**vars(ABOUT), "test": name, "test_file": name, "source": name, "versions": [name]})
    about = Subject(**{**vars(about), "environment": {name: name}, "revision": name, "exception": name})
    tree = ast.parse(script_text(about, CALL, Plan(seeds=[3], tries=4)))
    assert isinstance(tree.body[0], ast.Expr)
    assert [node.names[0].name for node in tree.body if isinstance(node, ast.Import)] == [
        "importlib.util",
        "os",
        "random",
        "sys",
        "traceback",
    ]


def test_it_is_short_or_refused():
    call = {**CALL, "helpers": ["fixture", "marked"], "imports": ["inspect", "torch", "pytest", "tempfile"]}
    text = script_text(ABOUT, call, Plan(seeds=[3]))
    assert text.count("\n") <= LINES
    ast.parse(text)
    with pytest.raises(ValueError, match="lines"):
        script_text(ABOUT, {**call, "statements": ["x = 1"] * 40}, Plan(seeds=[3]))


def cell(triton, cuda="cu130"):
    return Cell(python="3.12", torch="2.11.0", triton=triton, cuda=cuda, pinned_triton="3.6.0")


def test_the_cell_that_fails_most_and_is_here(home, told):
    write_cell(home, "b0", CELLS[0], failing=range(3, 9))
    write_cell(home, "b1", CELLS[1], failing=range(20))
    report, ledger = told(), home / "ledger.sqlite"
    chosen, case = choose_case(report, ledger, [cell("3.2.0"), cell("3.6.0")], "NVIDIA H200")
    assert (chosen.triton, [trial.seed for trial in case.failing][:3]) == ("3.6.0", [0, 1, 2])
    assert choose_case(report, ledger, [cell("3.2.0")], "NVIDIA H200")[0].triton == "3.2.0"
    assert "torch 2.11.0+cu130" in case.versions


def test_no_such_cell_and_no_such_gpu(home, told):
    flake(home)
    report, ledger = told(), home / "ledger.sqlite"
    with pytest.raises(UsageError, match="none of the cells that failed is in this matrix"):
        choose_case(report, ledger, [cell("3.9.0")], "NVIDIA H200")
    with pytest.raises(NotReadyError, match="it failed on NVIDIA H200, and that GPU is not here"):
        choose_case(report, ledger, [cell("3.6.0")], "")
