"""Large ledgers, matrices and histories for the load measurements; the store itself fills the ledgers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from repro.cli.workspace import Workspace, open_workspace
from repro.subject import Subject

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "integration"))
from fast_import import Repository

BLOCK = 200
"""Trials a process, as in the gpu profile of the shipped matrix.yaml."""
ONE_IN = 12
"""Of so many seeds, one fails: about the rate that was reported."""
ONE_CRASHES = 50
"""Of so many trials of each cell's last block, one comes to an outcome that enters no rate."""
BEGAN = 1_700_000_000.0

MATRIX = """\
subject: {{path: subject, test_file: test_op.py, test: test_it}}
trials: {{count: {count}, block: {block}}}
profiles:
  cpu:
    python: "3.12"
    torch: [{torch}]
    triton: {triton}
    cuda: cpu
    env: [{env}]
"""
TORCH = ("2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0",
         "2.14.1", "2.15.0")  # fmt: skip
TEST = "def test_it():\n    pass\n"

SIGNATURE = {
    "key": "AssertionError in test_it: comparison 0",
    "exception": "AssertionError",
    "file": "test_op.py",
    "function": "test_it",
    "line": 2,
    "comparison": 0,
}
MESSAGE = "Tensor-likes are not close!\n\nMismatched elements: 1 / 768000 (0.0%)"
COMPARISON = {
    "index": 0, "function": "torch.testing.assert_close", "where": "test_op.py:test_it:2", "dtype": "float32",
    "shape": [4, 1000, 8, 4, 3, 2], "size": 768000, "atol": 0.001, "rtol": 0.01, "nan": [0, 0], "inf": [0, 0],
}  # fmt: skip


def write_matrix(
    home: Path, *, count: int, triton: str, torch: tuple[str, ...] = TORCH, env: int = 1
) -> None:
    """A matrix.yaml and its subject.

    Args:
        count: trials a cell.
        triton: the axis, as YAML.
        env: environments, each with a variable of its own value.
    """
    (home / "subject").mkdir(parents=True, exist_ok=True)
    (home / "subject" / "test_op.py").write_text(TEST, encoding="utf-8")
    values = ", ".join(f'{{LOAD: "{number}"}}' if number else "{}" for number in range(env))
    text = MATRIX.format(count=count, block=BLOCK, torch=json.dumps(torch)[1:-1], triton=triton, env=values)
    (home / "matrix.yaml").write_text(text, encoding="utf-8")


def write_ledger(home: Path, trials: int) -> None:
    """Block files of 20 cells, all with the same seeds, and the ledger that the store makes of them."""
    cells = 20
    each = trials // cells
    write_matrix(home, count=each + BLOCK, torch=TORCH[2:], triton='[pinned, "3.5.0"]')
    state = home / ".repro"
    workspace = open_workspace(home / "matrix.yaml", profile="cpu", only=(), state=state, engine="venv")
    subject = workspace.subject(None, None, None)
    began = time.monotonic()
    for cell in workspace.cells:
        for first in range(0, each, BLOCK):
            _write_block(state, subject, cell.id, first)
        _write_block(state, subject, cell.id, each, crashes=True)
    print(f"{cells * (each + BLOCK)} trials in block files: {time.monotonic() - began:.0f} s", flush=True)
    began = time.monotonic()
    taken = _take_in(workspace)
    print(f"{taken} trials taken in: {time.monotonic() - began:.0f} s", flush=True)


def _take_in(workspace: Workspace) -> int:
    with workspace.ledger() as ledger:
        return sum(tally.n for tally in ledger.tallies())


def _write_block(state: Path, subject: Subject, cell: str, first: int, *, crashes: bool = False) -> None:
    name = f"20260101T000000-{cell}-{first:08}"
    folder = state / "blocks" / name
    folder.mkdir(parents=True)
    seeds = range(first, first + BLOCK)
    request = {
        "schema": 1, "block": name, "cell": cell, "subject": subject.revision, "test_file": "test_op.py",
        "test": subject.test, "mode": "seeds", "seeds": list(seeds), "first_trial": first,
    }  # fmt: skip
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    with (folder / "records.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in _events(cell, seeds, crashes=crashes))


def _events(cell: str, seeds: range, *, crashes: bool) -> Iterator[dict[str, object]]:
    facts = {"event": "cell", "schema": 1, "python": "3.12.3", "imported": ["torch"], "cell": cell}
    yield {**facts, "time": BEGAN}
    for seed in seeds:
        at = BEGAN + seed
        yield {"event": "start", "trial": seed, "seed": seed, "time": at}
        yield {
            "event": "end",
            "trial": seed,
            "seed": seed,
            "time": at + 0.01,
            **_outcome(seed, crashes=crashes),
        }
    yield {"event": "block_end", "complete": True, "time": BEGAN + seeds.stop}


def _outcome(seed: int, *, crashes: bool) -> dict[str, object]:
    if crashes and seed % ONE_CRASHES == 1:
        return {"outcome": "CRASHED", "message": "the process was ended by signal 11"}
    if seed % ONE_IN:
        passed = {**COMPARISON, "passed": True, "mismatched": 0, "max_abs": 1e-5, "ratio": 0.01}
        return {"outcome": "PASSED", "duration": 0.01, "total": 0.011, "comparisons": [passed]}
    worst = [{"index": [0, seed % 1000, 0, 0, 0, 0], "actual": 1.0 + seed % 7, "expected": -1.0}]
    failed = {**COMPARISON, "passed": False, "mismatched": 1, "max_abs": 2.0, "ratio": 100.0, "worst": worst}
    return {
        "outcome": "FAILED", "duration": 0.01, "total": 0.011, "comparisons": [failed],
        "signature": SIGNATURE, "message": MESSAGE,
    }  # fmt: skip


def write_history(home: Path, commits: int, culprit: int) -> list[str]:
    """A repository whose test fails from one commit on; the ids of its commits, oldest first."""
    repository = Repository(home / "repository")
    made = []
    for number in range(commits):
        value = int(number >= culprit)
        files = {
            "test_op.py": "import op\n\n\ndef test_it():\n    assert op.VALUE == 0\n",
            "op.py": f"VALUE = {value}\nCOMMIT = {number}\n",
        }
        made.append(repository.commit(f"commit {number}", files, made[-1:]))
    ids = repository.finish()
    return [ids[number] for number in made]
