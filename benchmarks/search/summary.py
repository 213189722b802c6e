"""The short tables of docs/search.md: goals, accuracy, and the peers at the twelve steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import mean

from benchmarks.search.methods import bound
from benchmarks.search.plots import BARS, GOALS, Rows, ratio
from benchmarks.search.worlds import SIZES, STEPS, Point, grid

ACCURACY: tuple[tuple[str, str, str, Callable[[Sequence[float]], float]], ...] = (
    ("one step: right, mean of all points", "step", "right", mean),
    ("one step: right, worst point", "step", "right", min),
    ("one step: undecided, worst point", "step", "undecided", max),
    ("no change: said so, worst point", "steady", "right", min),
    ("no change: a change stated, worst point", "steady", "wrong", max),
    ("untestable clusters: right, worst point", "untestable", "right", min),
    ("two steps: neither in the answer, worst point", "two steps", "wrong", max),
    ("slope: a candidate named, worst point", "ramp", "named", max),
    ("slope: the rate changes nowhere in the answer, worst point", "ramp", "beside", max),
    ("slope: undecided, worst point", "ramp", "undecided", max),
)
"""(what is shown, shape of the point, measure, which of the points and build costs)."""
PEERS = (
    "told the rates",
    "ours, build 0",
    "ours, ledger",
    "git_bayesect",
    "git bisect, pilot",
    "git bisect k=10",
)


def summary(rows: Rows) -> Iterator[str]:
    """Lines of Markdown."""
    yield "**Goals.** N = 128; fractions of what git_bayesect takes.\n"
    yield from _goals(rows)
    yield "\n**Accuracy of this search**, over build costs 0, 10, 100 and the ledger.\n"
    yield from _accuracy(rows)
    yield "\n**Peers.** N = 128; mean trials, and how many answers were right.\n"
    yield from _peers(rows)


def _goals(rows: Rows) -> Iterator[str]:
    bars = [(method, label, goal) for method, label, goal, _ in BARS if goal is not None]
    yield "| rates | " + " | ".join(f"{label} (goal {goal})" for _, label, goal in bars) + " |"
    yield "| --- |" + " --: |" * len(bars)
    for old, new in GOALS:
        cells = (_against(ratio(rows, old, new, method), goal) for method, _, goal in bars)
        yield f"| {old:g} to {new:g} | " + " | ".join(cells) + " |"


def _against(share: float | None, goal: float) -> str:
    if share is None:
        return "-"
    short = round(share, 2) - goal
    return f"{share:.2f}, reached" if short <= 1e-9 else f"{share:.2f}, missed by {short:.2f}"


def _accuracy(rows: Rows) -> Iterator[str]:
    sizes = [size for size in sorted(SIZES) if _own(rows, size)]
    heads = (f"N = {size}, {_runs(rows, size)} runs a point" for size in sizes)
    yield "| share of runs | " + " | ".join(heads) + " |"
    yield "| --- |" + " --: |" * len(sizes)
    for label, shape, key, pick in ACCURACY:
        shares = ([row[key] for row in _own(rows, size, shape) if key in row] for size in sizes)
        yield f"| {label} | " + " | ".join(f"{100 * pick(s):.1f} %" if s else "-" for s in shares) + " |"


def _own(rows: Rows, size: int, shape: str = "") -> list[dict[str, float]]:
    points = {point.name for point in grid() if point.size == size and shape in ("", point.shape)}
    keys = ((key, *key.split(" | ")) for key in rows)
    return [rows[key] for key, point, method in keys if point in points and method.startswith("ours")]


def _runs(rows: Rows, size: int) -> str:
    least, most = (pick(int(row["runs"]) for row in _own(rows, size)) for pick in (min, max))
    return f"{least}" if least == most else f"{least} to {most}"


def _peers(rows: Rows) -> Iterator[str]:
    yield "| rates | bound | " + " | ".join(PEERS) + " |"
    yield "| --- |" + " --: |" * (1 + len(PEERS))
    for old, new in ((o, n) for pair in STEPS for o, n in (pair, pair[::-1])):
        point = Point(128, "step", old, new)
        cells = (_cell(rows.get(f"{point.name} | {method}")) for method in PEERS)
        yield f"| {old:g} to {new:g} | {bound(point):.0f} | " + " | ".join(cells) + " |"


def _cell(row: dict[str, float] | None) -> str:
    return "-" if row is None else f"{row['trials']:.0f} ({100 * row['right']:.1f} %)"
