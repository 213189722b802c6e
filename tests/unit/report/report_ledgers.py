"""Ledgers that reports are made of: small ones trial by trial, large ones by SQL."""

from __future__ import annotations

import json
import sqlite3

from repro.store import Ledger

TEST = "test_backward[float32-border-False]"
H200, A100 = "NVIDIA H200", "NVIDIA A100"
CELLS = tuple(f"torch2.11.0-triton{triton}-cu130-py312" for triton in ("3.2.0", "3.6.0", "3.7.1"))
SIGNATURE = {
    "comparison": 1,
    "exception": "AssertionError",
    "file": "test_op.py",
    "function": "test_backward",
    "key": "AssertionError in test_backward: comparison 1",
    "line": 62,
    "place": "call",
    "source": "torch.testing.assert_close(grad_points, true_grad_points, **close)",
}
MESSAGE = "Tensor-likes are not close!\n\nMismatched elements: 1 / 48 (2.1%)"
FACTS = {
    "event": "cell",
    "schema": 1,
    "time": 1.0,
    "python": "3.12.3",
    "torch": "2.11.0+cu130",
    "ptxas": "12.8",
    "driver": "580.159.04",
    "env": {"TRITON_CACHE_DIR": "/cache/triton"},
    "imported": ["torch"],
}


def comparisons(seed, *, failed, ratio=0.01):
    """A comparison that passes, and one of shape [2, 8, 3] that fails by a seed's own element, or passes."""
    first = {
        "index": 0, "function": "torch.testing.assert_close", "where": "test_op.py:test_backward:60",
        "passed": True, "dtype": "float32", "shape": [2, 3], "size": 6, "atol": 0.001, "rtol": 0.01,
        "max_abs": 1e-6, "ratio": 0.001, "nan": [0, 0], "inf": [0, 0], "mismatched": 0,
    }  # fmt: skip
    second = {
        **first, "index": 1, "where": "test_op.py:test_backward:62", "shape": [2, 8, 3], "size": 48,
        "passed": not failed, "max_abs": 1e-5, "ratio": ratio,
    }  # fmt: skip
    if failed:
        index = [seed % 2, seed % 8, seed % 3]
        worst = {"index": index, "actual": 1.0 + seed, "expected": -1.0}
        second |= {"mismatched": 1, "mismatched_at": f"m{seed}", "worst": [worst], "max_abs": 2.0 + seed}
        second |= {"ratio": 100.0 + seed}
    return [first, second]


def write_cell(home, name, cell, *, failing, trials=40, mode="seeds", gpu=H200, test=TEST, **more):
    """A block of one cell: seeds from 0 on, those in `failing` fail; `more` overrides fields of failures."""
    folder = home / "blocks" / name
    folder.mkdir(parents=True)
    revision = more.pop("revision", "content-0123456789ab")
    facts = {**FACTS, "gpu": gpu, "triton": cell.split("triton")[-1].split("-")[0], **more.pop("facts", {})}
    repeats = mode in ("repeat", "replay")
    seeds = [7] * trials if repeats else list(range(trials))
    request = {
        "cell": cell,
        "subject": revision,
        "test": test,
        "mode": mode,
        "gpu_model": gpu,
        "seeds": seeds,
    }
    (folder / "request.json").write_text(json.dumps(request))
    events = [facts, *(_end(number, seed, number in failing, more) for number, seed in enumerate(seeds))]
    (folder / "records.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


def _end(number, seed, failed, more):
    end = {"event": "end", "trial": number, "seed": seed, "time": float(number), "duration": 0.01}
    end |= {"outcome": "PASSED", "comparisons": comparisons(seed, failed=False)}
    if failed:
        end |= {"outcome": "FAILED", "signature": SIGNATURE, "message": MESSAGE}
        end |= {"comparisons": comparisons(seed, failed=True), **more}
    return end


def flake(home, *, cells=CELLS, failing=(1, 5, 9, 14), trials=40):
    """Every cell fails at the same seeds, at the same elements."""
    for number, cell in enumerate(cells):
        write_cell(home, f"b{number}", cell, failing=failing, trials=trials)


def open_ledger(home):
    ledger = Ledger.open(home / "ledger.sqlite")
    ledger.catch_up()
    return ledger


def big_ledger(path, *, trials, cells, one_in=12):
    """A ledger with many trials, written by SQL: all cells alike, every twelfth seed fails."""
    Ledger.open(path).close()
    db = sqlite3.connect(path, isolation_level=None)
    triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    db.execute("PRAGMA synchronous = OFF")
    db.execute("BEGIN")
    for name, _ in triggers:
        db.execute(f"DROP TRIGGER {name}")
    db.execute("INSERT INTO signatures VALUES (1, ?, ?)", (SIGNATURE["key"], json.dumps(SIGNATURE)))
    texts = [json.dumps(comparisons(3, failed=failed)) for failed in (False, True)]
    for cell in range(1, cells + 1):
        about = (f"torch2.11.0-triton3.{cell}.0-cu130-py312", "content-0", TEST, "seeds", H200)
        db.execute("INSERT INTO series VALUES (?, ?, ?, ?, ?, ?)", (cell, *about))
        rows = trials // cells
        db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)"
            " INSERT INTO blocks (id, name, digest, cell, revision, test, mode, gpu)"
            " SELECT ? * 1000000 + i, 'b' || ? || '-' || i, 'd', ?, ?, ?, ?, ? FROM n",
            (-(-rows // 200), cell, cell, *about),
        )
        db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)"
            " INSERT INTO trials SELECT ? * 1000000 + i / 200, i % 200, ?, i, 0,"
            " iif(i % ?, 'PASSED', 'FAILED'), 1, i, 0.01, iif(i % ?, NULL, 1), iif(i % ?, NULL, 'no'),"
            " iif(i % ?, ?, ?) FROM n",
            (rows, cell, cell, one_in, one_in, one_in, one_in, *texts),
        )
    db.execute("INSERT INTO tallies SELECT series, outcome, count(*) FROM trials GROUP BY 1, 2")
    for _, statement in triggers:
        db.execute(statement)
    db.execute("COMMIT")
    db.close()
