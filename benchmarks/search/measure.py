"""Runs of one method at one point, and what is kept of them in docs/search/results.json."""

from __future__ import annotations

import argparse
import json
import re
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import mean

from benchmarks.search.methods import Method, bound, methods
from benchmarks.search.worlds import Point, World, grid

RESULTS = Path(__file__).parents[2] / "docs" / "search" / "results.json"
Rows = dict[str, dict[str, float]]


def one(point: Point, method: Method, run: int) -> dict[str, float]:
    """The measures of one run."""
    world = World(point, run)
    world.rewind()
    answer = method(world)
    inside = answer.low is not None and any(answer.low < s <= answer.high for s in world.steps)
    none = answer.low is None
    right = answer.sure and (inside if world.steps else none)
    if point.shape == "ramp":
        right = right and not answer.named
    return {
        "right": right,
        "wrong": answer.sure and not right and (answer.named or not inside),
        "beside": answer.sure and bool(world.steps) and not inside,
        "named": answer.sure and answer.named,
        "undecided": not answer.sure,
        "claimed": answer.claimed if answer.sure else -1.0,
        "trials": world.trials,
        "builds": len(world.built),
    }


def measure(pool: Executor, point: Point, method: Method, runs: int) -> dict[str, float]:
    rows = list(pool.map(partial(one, point, method), range(runs), chunksize=10))
    trials = sorted(row["trials"] for row in rows)
    claims = [row["claimed"] for row in rows if row["claimed"] >= 0]
    share = {
        key: mean(row[key] for row in rows)
        for key in ("right", "wrong", "beside", "named", "undecided", "builds")
    }
    return {
        **share,
        "claimed": mean(claims) if claims else 0.0,
        "trials": mean(trials),
        "trials50": trials[len(trials) // 2],
        "trials95": trials[int(0.95 * len(trials))],
        "runs": runs,
    }


def load() -> Rows:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def run(args: argparse.Namespace) -> None:
    wanted = re.compile(args.points)
    with ProcessPoolExecutor(args.processes) as pool:
        for point in grid():
            for name, _, method in methods(point):
                key = f"{point.name} | {name}"
                done = load()
                if not wanted.search(key) or (
                    done.get(key, {}).get("runs", 0) >= args.runs and not args.fresh
                ):
                    continue
                row = measure(pool, point, method, args.runs)
                done = load() | {key: row | {"bound": bound(point)}}
                RESULTS.parent.mkdir(parents=True, exist_ok=True)
                RESULTS.with_suffix(".part").write_text(json.dumps(done, indent=0, sort_keys=True) + "\n")
                RESULTS.with_suffix(".part").replace(RESULTS)
                print(
                    f"{key:48} right {row['right']:.3f} wrong {row['wrong']:.3f} trials {row['trials']:.0f}"
                    f" builds {row['builds']:.1f}",
                    flush=True,
                )
