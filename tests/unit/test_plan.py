"""What a run would do: images, trials, minutes."""

import json
import subprocess
import sys

import pytest

from repro.cells import Cell, Excluded, Expansion
from repro.plan import CELL_SECONDS, STACK_SECONDS, TRIAL_SECONDS, plan


def cell(torch: str, triton: str, cuda: str = "cu130") -> Cell:
    return Cell(python="3.12", torch=torch, triton=triton, cuda=cuda, pinned_triton="3.6.0")


A, B, C = cell("2.11.0", "3.5.1"), cell("2.11.0", "3.6.0"), cell("2.13.0", "3.6.0", "cpu")
OUT = Excluded(cell=cell("2.15.0", "3.9.0"), reason="no such wheel")
EXPANSION = Expansion(cells=(A, B, C), excluded=(OUT,), reasons={A.id: "around"})


def test_cells_of_one_stack_share_its_build():
    rows = plan(EXPANSION, present=lambda _: False, trials=100).rows
    assert [row.build_seconds for row in rows] == [
        STACK_SECONDS[True] + CELL_SECONDS,
        CELL_SECONDS,
        STACK_SECONDS[False] + CELL_SECONDS,
    ]


def test_what_is_present_costs_no_build_and_lends_its_stack():
    found = plan(EXPANSION, present=lambda each: each == B, trials=100)
    assert [row.build_seconds for row in found.rows][:2] == [CELL_SECONDS, 0.0]
    assert found.builds == 2


def test_history_beats_neighbours_and_neighbours_beat_constants():
    rows = plan(EXPANSION, present=lambda _: True, trials=60, history={A.id: 2.0}).rows
    assert [row.trial_seconds for row in rows] == [2.0, 2.0, TRIAL_SECONDS[False]]
    assert [row.measured for row in rows] == [True, False, False]
    assert rows[0].minutes == pytest.approx(2.0)


def test_trials_in_the_ledger_are_not_run_again():
    found = plan(EXPANSION, present=lambda _: True, trials=60, done={A.id: 50, B.id: 600})
    assert [row.done for row in found.rows] == [50, 60, 0]
    assert found.trials == 70


def test_workers_share_the_trials_but_one_cell_stays_whole():
    history = {A.id: 1.0, B.id: 1.0, C.id: 4.0}
    minutes = [
        plan(EXPANSION, present=lambda _: True, trials=60, history=history, workers=workers).minutes
        for workers in (1, 2, 8)
    ]
    assert minutes == pytest.approx([6.0, 4.0, 4.0])


def test_nothing_to_do():
    assert plan(Expansion(cells=()), present=lambda _: True, trials=5).minutes == 0.0


def test_json():
    found = plan(EXPANSION, present=lambda each: each != C, trials=60, history={A.id: 1.0}).to_json()
    assert json.loads(json.dumps(found)) == found
    assert found["cells"][0] == {
        "id": "torch2.11.0-triton3.5.1-cu130-py312",
        "python": "3.12",
        "torch": "2.11.0",
        "triton": "3.5.1",
        "cuda": "cu130",
        "pinned_triton": "3.6.0",
        "ptxas": None,
        "env": {},
        "packages": [],
        "crossed": True,
        "gpu": True,
        "present": True,
        "trials": {"wanted": 60, "done": 0},
        "minutes": 1.0,
        "measured": True,
        "reason": "around",
    }
    assert found["excluded"] == [{"id": OUT.cell.id, "reason": "no such wheel"}]
    assert found["total"] == {"cells": 3, "excluded": 1, "builds": 1, "trials": 180, "minutes": 4.3}


def test_planning_imports_nothing_heavy():
    heavy = "{'docker', 'rich', 'torch', 'numpy'}"
    program = f"import sys, repro.plan, repro.subject; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
