"""The change-point search beside its peers, on the same simulated outcomes.

    python -m benchmarks.search run --runs 200 --points 'N128 .*'   # adds to docs/search/results.json
    python -m benchmarks.search report                              # docs/search.md's tables and plots

Every candidate of a run has one stream of uniform numbers; a trial fails where the next number is below the
candidate's rate. All methods read the same streams from their start. Needs `git-bayesect` (and its numpy).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import ceil, log, log2
from pathlib import Path
from statistics import mean

import numpy as np
from git_bayesect import Bisector

from repro.search import ChangePointSearch

RESULTS = Path(__file__).parents[1] / "docs" / "search" / "results.json"
PAGE = RESULTS.parents[1] / "search.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
ASKED = 0.95
LEDGER = 200
SIZES = (16, 32, 128, 1024)
STEPS = ((0, 0.1), (0, 0.3), (0, 1), (0.05, 0.3), (0.003, 0.09), (0.2, 0.8))
STEADY = (0, 0.05, 0.3, 1)


@dataclass(frozen=True)
class Point:
    """One row of the grid: how candidates' rates are drawn."""

    size: int
    shape: str  # step, steady, ramp, two steps, untestable
    old: float
    new: float

    @property
    def name(self) -> str:
        return f"N{self.size} {self.shape} {self.old:g}->{self.new:g}"


class World:
    """The candidates of one run: rates, untestable ones, streams."""

    def __init__(self, point: Point, run: int) -> None:
        dice = random.Random(f"{point.name} {run}")
        size = point.size
        self.point, self.run = point, run
        self.change = dice.randrange(1, size)
        self.steps = [self.change]
        self.rates = [point.old if i < self.change else point.new for i in range(size)]
        self.untestable: set[int] = set()
        if point.shape == "steady":
            self.steps = []
        elif point.shape == "ramp":
            first, last = size * 3 // 8, size * 5 // 8
            self.steps = list(range(first, last))
            self.rates = [
                point.old + (point.new - point.old) * min(1, max(0, (i + 1 - first) / (last - first)))
                for i in range(size)
            ]
        elif point.shape == "two steps":
            self.steps = [size // 3, size * 2 // 3]
            middle = point.old + (point.new - point.old) / 3
            self.rates = [
                (point.old, middle, point.new)[sum(i >= s for s in self.steps)] for i in range(size)
            ]
        elif point.shape == "untestable":
            while len(self.untestable) < size // 5:
                start = dice.randrange(1, size - 1)
                self.untestable |= set(range(start, min(size - 1, start + max(1, size // 32))))
        self.rewind()

    def rewind(self) -> None:
        """Start every stream anew, for the next method."""
        self.streams: dict[int, random.Random] = {}
        self.trials = 0
        self.built: set[int] = set()

    def fails(self, index: int) -> bool:
        """One trial."""
        if index not in self.streams:
            self.streams[index] = random.Random(f"{self.point.name} {self.run} {index}")
        self.built.add(index)
        self.trials += 1
        return self.streams[index].random() < self.rates[index]

    def visit(self, index: int) -> bool:
        """Build a candidate; False if it cannot be tested."""
        self.built.add(index)
        return index not in self.untestable


@dataclass(frozen=True)
class Answer:
    """(low, high] is where the change is said to be; None: no change. `sure`: stated, not undecided."""

    low: int | None
    high: int | None
    sure: bool
    claimed: float
    named: bool
    kind: str = ""


def ours(world: World, build: float, ledger: int) -> Answer:
    search = ChangePointSearch(world.point.size, ASKED, build, max_trials=6000)
    ends = (0, world.point.size - 1) if ledger else ()
    for end in ends:
        failed = sum(world.fails(end) for _ in range(ledger))
        search.observe(end, failed=failed, passed=ledger - failed)
    world.trials, world.built = 0, set()
    while (ask := search.propose()) is not None:
        if not world.visit(ask.index):
            search.skip(ask.index)
            continue
        failed = sum(world.fails(ask.index) for _ in range(ask.trials))
        search.observe(ask.index, failed=failed, passed=ask.trials - failed)
    world.built -= set(ends)
    verdict = search.verdict()
    sure = verdict.kind != "inconclusive" and verdict.confidence >= ASKED - 1e-9
    return Answer(
        verdict.low, verdict.high, sure, verdict.confidence, verdict.first_bad is not None, verdict.kind
    )


def bayesect(world: World) -> Answer:
    size = world.point.size
    peer = Bisector(np.full(size, 1.0 / size))
    cap = 3000 if world.steps else 1000
    while world.trials < cap and peer.distribution.max() < ASKED:
        pick = int(peer.select())  # index 0 is its newest
        index = size - 1 - pick
        peer.record(pick, world.fails(index) if world.visit(index) else None)
    claimed = float(peer.distribution.max())
    first_bad = size - 1 - int(peer.distribution.argmax())
    return Answer(first_bad - 1, first_bad, claimed >= ASKED, claimed, True)


def _bisect(world: World, repeats: int) -> Answer:
    """`git bisect run` of a script that fails at the first failure in `repeats` trials."""
    low, high = 0, world.point.size - 1
    rising = world.point.new >= world.point.old
    while True:
        inner = [i for i in range(low + 1, high) if i not in world.built or i not in world.untestable]
        if not inner:
            return Answer(low, high, True, 1.0, high == low + 1)
        middle = min(inner, key=lambda i: abs(i - (low + high) // 2))
        if world.visit(middle):
            bad = any(world.fails(middle) for _ in range(repeats))
            low, high = (low, middle) if bad == rising else (middle, high)


def pilot(world: World) -> Answer:
    """`git bisect` with as many repeats as a pilot at the failing end suggests."""
    end = world.point.size - 1 if world.point.new >= world.point.old else 0
    failed = 0
    while failed < 5 and world.trials < 100:
        failed += world.fails(end)
    rate = failed / world.trials
    slip = (1 - ASKED) / max(1.0, log2(world.point.size))
    repeats = 1 if rate >= 1 else ceil(log(slip) / log(1 - rate)) if rate > 0 else 100
    return _bisect(world, repeats)


def told(world: World) -> Answer:
    """Greedy search that is told both rates, and that there is a change."""
    size, old, new = world.point.size, world.point.old, world.point.new
    logs = np.zeros(size - 1)  # change at 1 ... size - 1
    chance = [(max(p, 1e-300), max(1 - p, 1e-300)) for p in (old, new)]
    blocked: set[int] = set()
    while True:
        mass = np.exp(logs - logs.max())
        mass /= mass.sum()
        if mass.max() >= ASKED or world.trials >= 3000:
            break
        after = np.concatenate([[0.0], np.cumsum(mass)])
        fails = after * new + (1 - after) * old
        gain = _entropy(fails) - after * _entropy(new) - (1 - after) * _entropy(old)
        gain[list(blocked)] = -1.0
        index = int(gain.argmax())
        if gain[index] <= 1e-12:
            break
        if not world.visit(index):
            blocked.add(index)
            continue
        outcome = 0 if world.fails(index) else 1
        logs[:index] += log(chance[1][outcome])
        logs[index:] += log(chance[0][outcome])
    first_bad = int(mass.argmax()) + 1
    return Answer(first_bad - 1, first_bad, bool(mass.max() >= ASKED), float(mass.max()), True)


def _entropy(p: np.ndarray | float) -> np.ndarray:
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return -(p * np.log2(p) + (1 - p) * np.log2(1 - p))


def bound(point: Point) -> float | None:
    """The usual estimate of what a search that is told the rates needs (docs/search.md)."""
    old, new = sorted((point.old, point.new))
    if old == new:
        return None
    shares = np.linspace(0.0005, 0.9995, 1999)
    mixed = (
        _entropy(shares * new + (1 - shares) * old) - shares * _entropy(new) - (1 - shares) * _entropy(old)
    )
    ends = sum(1 / d for d in (_kl(old, new), _kl(new, old)) if d)
    return float(ASKED * log2(point.size) / mixed.max() + log2(1 / (1 - ASKED)) * ends)


def _kl(p: float, q: float) -> float | None:
    terms = [(a, b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0]
    return None if any(b == 0 for _, b in terms) else sum(a * log2(a / b) for a, b in terms)


Method = Callable[[World], Answer]


def methods(point: Point) -> Iterator[tuple[str, float, Method]]:
    """(name, the build cost it was told of, function): the methods that a point is run with."""
    for build in (0, 10, 100):
        yield f"ours, build {build}", build, partial(ours, build=build, ledger=0)
    if point.shape == "step":
        yield "ours, ledger", 0, partial(ours, build=0, ledger=LEDGER)
    yield "git_bayesect", 0, bayesect
    for repeats in (1, 3, 5, 10, 20):
        yield f"git bisect k={repeats}", 0, partial(_bisect, repeats=repeats)
    yield "git bisect, pilot", 0, pilot
    if point.shape in ("step", "untestable"):
        yield "told the rates", 0, told


def grid() -> list[Point]:
    points = []
    for size in (128, 32, 16, 1024):
        for old, new in STEPS:
            points += [Point(size, "step", old, new), Point(size, "step", new, old)]
        points += [Point(size, "steady", rate, rate) for rate in STEADY]
        points += [Point(size, shape, 0, 0.3) for shape in ("ramp", "two steps", "untestable")]
    return points


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
        key: mean(row[key] for row in rows) for key in ("right", "wrong", "named", "undecided", "builds")
    }
    return {
        **share,
        "claimed": mean(claims) if claims else 0.0,
        "trials": mean(trials),
        "trials50": trials[len(trials) // 2],
        "trials95": trials[int(0.95 * len(trials))],
        "runs": runs,
    }


def load() -> dict[str, dict[str, float]]:
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


def report(_: argparse.Namespace) -> None:
    rows = load()
    plots = RESULTS.parent
    (plots / "cost.svg").write_text(_cost_plot(rows))
    (plots / "accuracy.svg").write_text(_accuracy_plot(rows))
    page = PAGE.read_text()
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(_tables(rows)) + END + tail)


def _tables(rows: dict[str, dict[str, float]]) -> Iterator[str]:
    for size in sorted(SIZES):
        points = [p for p in grid() if p.size == size and any(k.startswith(f"{p.name} |") for k in rows)]
        if not points:
            continue
        runs = int(min(row["runs"] for key, row in rows.items() if key.startswith(f"N{size} ")))
        yield f"<details><summary>N = {size}, {runs} runs a row</summary>\n"
        yield (
            "| point | method | right | false | undecided | claimed | trials | 50 % | 95 % | builds"
            " | cost at 0 / 10 / 100 | bound |"
        )
        yield "| --- | --- |" + " --: |" * 10
        for point in points:
            for name, told_of, _ in methods(point):
                row = rows.get(f"{point.name} | {name}")
                if row is not None:
                    yield _line(point, name, told_of, row)
        yield "\n</details>\n"


def _line(point: Point, name: str, told_of: float, row: dict[str, float]) -> str:
    own = name.startswith("ours, build")
    costs = (
        f"{row['trials'] + b * row['builds']:.0f}" if not own or b == told_of else "-" for b in (0, 10, 100)
    )
    limit = bound(point) if point.shape == "step" else None
    cells = [
        *(f"{100 * row[key]:.1f} %" for key in ("right", "wrong", "undecided", "claimed")),
        *(f"{row[key]:.0f}" for key in ("trials", "trials50", "trials95")),
        f"{row['builds']:.1f}",
        " / ".join(costs),
        "-" if limit is None else f"{limit:.0f}",
    ]
    return f"| {point.name.partition(' ')[2]} | {name} | " + " | ".join(cells) + " |"


GOALS = ((0.2, 0.8), (0, 0.3), (0, 0.1), (0.05, 0.3))
SHOWN = (("ours, build 0", "#1b6ca8"), ("ours, ledger", "#7fb3d9"), ("git_bayesect", "#c0504d"))


def _cost_plot(rows: dict[str, dict[str, float]]) -> str:
    parts = []
    top = max(
        (rows.get(f"N128 step {o:g}->{n:g} | {m}", {}).get("trials", 0) for o, n in GOALS for m, _ in SHOWN)
    )
    for group, (old, new) in enumerate(GOALS):
        for bar, (name, colour) in enumerate(SHOWN):
            row = rows.get(f"N128 step {old:g}->{new:g} | {name}")
            if row is None:
                continue
            height = 200 * row["trials"] / top
            x = 50 + group * 140 + bar * 36
            parts.append(_box(x, 240 - height, 30, height, colour, f"{row['trials']:.0f}"))
        parts.append(_text(100 + group * 140, 260, f"{old:g} to {new:g}"))
    for index, (name, colour) in enumerate(SHOWN):
        parts.append(_box(50 + index * 180, 280, 12, 12, colour, ""))
        parts.append(_text(70 + index * 180, 290, name, "start"))
    return _svg(620, 305, "Mean trials, N = 128", parts)


def _accuracy_plot(rows: dict[str, dict[str, float]]) -> str:
    parts = []
    steps = [(o, n) for pair in STEPS for o, n in (pair, pair[::-1])]
    names = [("ours, build 0", "#1b6ca8"), ("git_bayesect", "#c0504d"), ("git bisect k=10", "#999999")]
    names.append(("git bisect, pilot", "#e0a030"))
    for line, share in enumerate((1.0, 0.95, 0.5, 0.0)):
        y = 40 + 200 * (1 - share)
        dash = ' stroke-dasharray="4 3"' if line == 1 else ""
        parts.append(f'<path d="M50 {y:.0f}H650" stroke="#bbb"{dash}/>')
        parts.append(_text(44, y + 4, f"{100 * share:.0f} %", "end"))
    for column, (old, new) in enumerate(steps):
        for offset, (name, colour) in enumerate(names):
            row = rows.get(f"N128 step {old:g}->{new:g} | {name}")
            if row is not None:
                x, y = 66 + column * 49 + offset * 8, 40 + 200 * (1 - row["right"])
                parts.append(f'<circle cx="{x}" cy="{y:.1f}" r="3.5" fill="{colour}"/>')
        parts.append(_text(78 + column * 49, 258, f"{old:g}-{new:g}"))
    for index, (name, colour) in enumerate(names):
        parts.append(_box(50 + index * 150, 280, 12, 12, colour, ""))
        parts.append(_text(68 + index * 150, 290, name, "start"))
    return _svg(665, 305, "Right answers, N = 128, by rates before and after", parts)


def _box(x: float, y: float, width: float, height: float, colour: str, label: str) -> str:
    box = f'<rect x="{x:.0f}" y="{y:.1f}" width="{width:.0f}" height="{height:.1f}" fill="{colour}"/>'
    return box + (_text(x + width / 2, y - 4, label) if label else "")


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{text}</text>'


def _svg(width: int, height: int, title: str, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
    style = f'height="{height}" font-family="sans-serif" font-size="11"><title>{title}</title>'
    paper = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head + style, paper, _text(width / 2, 18, title), *parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run")
    runner.add_argument("--runs", type=int, default=200)
    runner.add_argument("--points", default=".", help="regular expression on 'N128 step 0->0.3 | method'")
    runner.add_argument("--processes", type=int, default=os.cpu_count())
    runner.add_argument("--fresh", action="store_true", help="measure again what results.json has")
    runner.set_defaults(call=run)
    commands.add_parser("report").set_defaults(call=report)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
