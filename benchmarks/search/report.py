"""The tables of docs/search.md, and the plots beside it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks.search.measure import RESULTS, Rows, load
from benchmarks.search.methods import bound, methods
from benchmarks.search.plots import accuracy_plot, cost_plot
from benchmarks.search.worlds import SIZES, Point, grid

PAGE = RESULTS.parents[1] / "search.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def report(_: argparse.Namespace) -> None:
    rows = load()
    plots = RESULTS.parent
    (plots / "cost.svg").write_text(cost_plot(rows))
    (plots / "accuracy.svg").write_text(accuracy_plot(rows))
    page = PAGE.read_text()
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(_tables(rows)) + END + tail)


def _tables(rows: Rows) -> Iterator[str]:
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
