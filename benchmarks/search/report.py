"""The tables of docs/search.md and docs/search/points.md, and the plots beside them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks.search.measure import RESULTS, Rows, load
from benchmarks.search.methods import bound, methods
from benchmarks.search.plots import accuracy_plot, cost_plot, growth_plot
from benchmarks.search.summary import summary
from benchmarks.search.worlds import SIZES, Point, grid

PAGE = RESULTS.parents[1] / "search.md"
POINTS = RESULTS.with_name("points.md")
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
HEAD = """# All points of the search's benchmark

What the methods and columns mean stands in [search.md](../search.md).
`python -m benchmarks.search report` writes this page from `results.json`.

"""


def report(_: argparse.Namespace) -> None:
    rows = load()
    plots = {"cost": cost_plot, "accuracy": accuracy_plot, "growth": growth_plot}
    for name, plot in plots.items():
        RESULTS.with_name(f"{name}.svg").write_text(plot(rows))
    POINTS.write_text(HEAD + "\n".join(_tables(rows)))
    head, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(summary(rows)) + "\n" + END + tail)


def _tables(rows: Rows) -> Iterator[str]:
    for size in sorted(SIZES):
        points = [p for p in grid() if p.size == size and any(k.startswith(f"{p.name} |") for k in rows)]
        if not points:
            continue
        yield f"## N = {size}\n"
        yield (
            "| point | method | runs | right | false | undecided | claimed | trials | 50 % | 95 % | builds"
            " | cost at 0 / 10 / 100 | bound |"
        )
        yield "| --- | --- |" + " --: |" * 11
        for point in points:
            for name, told_of, _ in methods(point):
                row = rows.get(f"{point.name} | {name}")
                if row is not None:
                    yield _line(point, name, told_of, row)
        yield ""


def _line(point: Point, name: str, told_of: float, row: dict[str, float]) -> str:
    own = name.startswith("ours, build")
    costs = (
        f"{row['trials'] + b * row['builds']:.0f}" if not own or b == told_of else "-" for b in (0, 10, 100)
    )
    limit = bound(point) if point.shape == "step" else None
    cells = [
        f"{row['runs']:.0f}",
        *(f"{100 * row[key]:.1f} %" for key in ("right", "wrong", "undecided", "claimed")),
        *(f"{row[key]:.0f}" for key in ("trials", "trials50", "trials95")),
        f"{row['builds']:.1f}",
        " / ".join(costs),
        "-" if limit is None else f"{limit:.0f}",
    ]
    return f"| {point.name.partition(' ')[2]} | {name} | " + " | ".join(cells) + " |"
