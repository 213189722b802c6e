"""Plots as SVG, drawn by hand: three are not worth a plotting library.

Colours follow the reader's light or dark scheme where the viewer tells the picture of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from benchmarks.search.worlds import SIZES, STEPS

Rows = dict[str, dict[str, float]]

GOALS = ((0.2, 0.8), (0, 0.3), (0, 0.1), (0.05, 0.3))
"""The rates, before and after, for which a goal is set."""
BARS = (
    ("ours, build 0", "from nothing", 0.75, "a"),
    ("ours, ledger", "200 known trials at each end", 0.55, "b"),
    ("ours, build 100", "cost at 100 a build", 0.35, "c"),
    ("told the rates", "told the rates", None, "d"),
)
"""(method, what a reader sees, its goal as a fraction of git_bayesect, colour)."""

_STYLE = """<style>
text { font: 12px sans-serif; fill: #1f2328 } .title { font-size: 14px } .small { font-size: 11px }
.paper { fill: #ffffff } .grid { stroke: #d0d7de } .goal { stroke: #1f2328; stroke-width: 2 }
.a { fill: #1f6fb5; stroke: #1f6fb5 } .b { fill: #7fb2dc; stroke: #7fb2dc }
.c { fill: #d98b2b; stroke: #d98b2b } .d { fill: #8c959f; stroke: #8c959f }
.e { fill: #c2453d; stroke: #c2453d } .line { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .paper { fill: #0d1117 } .grid { stroke: #3d444d } .goal { stroke: #e6edf3 }
.a { fill: #4c9be8; stroke: #4c9be8 } .b { fill: #a5cdf0; stroke: #a5cdf0 }
.line { fill: none }
}
</style>"""


def ratio(rows: Rows, old: float, new: float, method: str) -> float | None:
    """Trials of a method at N = 128 as a fraction of git_bayesect's; with dear builds, the costs'."""
    own = rows.get(f"N128 step {old:g}->{new:g} | {method}")
    peer = rows.get(f"N128 step {old:g}->{new:g} | git_bayesect")
    if own is None or peer is None:
        return None
    build = 100 if method == "ours, build 100" else 0
    return (own["trials"] + build * own["builds"]) / (peer["trials"] + build * peer["builds"])


def cost_plot(rows: Rows) -> str:
    """Fractions of git_bayesect's trials, or cost, with a mark at each goal."""
    parts = [_rule(y, 60, 700, f"{share:g}") for share in (0, 0.5, 1) for y in [245 - 150 * share]]
    for group, (old, new) in enumerate(GOALS):
        for bar, (method, _, goal, colour) in enumerate(BARS):
            x = 70 + group * 160 + bar * 36
            share = ratio(rows, old, new, method)
            if share is not None:
                parts.append(_bar(x, 245, 30, 150 * share, colour, f"{share:.2f}"))
            if goal is not None:
                parts.append(f'<path class="goal" d="M{x - 2} {245 - 150 * goal:.1f}h34"/>')
        parts.append(_text(139 + group * 160, 280, f"{old:g} to {new:g}"))
    parts += _legend([(label, colour) for _, label, _, colour in BARS])
    parts.append('<path class="goal" d="M676 301h20"/>' + _text(702, 305, "goal", "start"))
    return _svg(740, 320, "Cost as a fraction of git_bayesect's, N = 128", parts)


def accuracy_plot(rows: Rows) -> str:
    """Shares of right answers at the twelve steps."""
    names = [("ours, build 0", "a"), ("git_bayesect", "e"), ("git bisect, pilot", "c")]
    names.append(("git bisect k=10", "d"))
    parts = [_rule(260 - 210 * share, 60, 850, f"{100 * share:g} %") for share in (0, 0.5, 0.95, 1)]
    for column, (old, new) in enumerate((o, n) for pair in STEPS for o, n in (pair, pair[::-1])):
        for offset, (method, colour) in enumerate(names):
            row = rows.get(f"N128 step {old:g}->{new:g} | {method}")
            if row is not None:
                x, y = 76 + column * 65 + offset * 12, 260 - 210 * row["right"]
                parts.append(f'<circle class="{colour}" cx="{x}" cy="{y:.1f}" r="4"/>')
        parts.append(_text(94 + column * 65, 280, f"{old:g}-{new:g}", style="small"))
    parts += _legend(names)
    return _svg(870, 320, "Right answers by rates before and after, N = 128", parts)


def growth_plot(rows: Rows) -> str:
    """Mean trials by the number of candidates, at two of the goals' rates."""
    lines = [("ours, build 0", "a"), ("ours, ledger", "b"), ("git_bayesect", "e"), ("told the rates", "d")]
    parts = []
    for panel, (old, new) in enumerate(((0, 0.3), (0.05, 0.3))):
        left = 60 + panel * 340
        curves = {method: _by_size(rows, old, new, method) for method, _ in lines}
        top = max((trials for curve in curves.values() for _, trials in curve), default=1.0)
        parts += [_rule(260 - 190 * share, left, left + 280, f"{top * share:.0f}") for share in (0, 0.5, 1)]
        for method, colour in lines:
            spots = [(left + 38 * (log2(s) - 3.5), 260 - 190 * t / top) for s, t in curves[method]]
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
            parts.append(f'<path class="{colour} line" d="M{path}"/>' if spots else "")
            parts += [f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in spots]
        parts += [_text(left + 38 * (log2(size) - 3.5), 278, f"{size}") for size in SIZES]
        parts.append(_text(left + 140, 52, f"{old:g} to {new:g}"))
    parts += _legend(lines)
    return _svg(720, 320, "Mean trials by the number of candidates", parts)


def _by_size(rows: Rows, old: float, new: float, method: str) -> list[tuple[int, float]]:
    keys = ((size, f"N{size} step {old:g}->{new:g} | {method}") for size in sorted(SIZES))
    return [(size, rows[key]["trials"]) for size, key in keys if key in rows]


def _rule(y: float, left: float, right: float, label: str) -> str:
    return f'<path class="grid" d="M{left} {y:.1f}H{right}"/>' + _text(left - 6, y + 4, label, "end", "small")


def _bar(x: float, base: float, width: float, height: float, colour: str, label: str) -> str:
    top = base - height
    box = f'<rect class="{colour}" x="{x}" y="{top:.1f}" width="{width}" height="{height:.1f}"/>'
    return box + _text(x + width / 2, base + 14, label, style="small")


def _legend(names: Sequence[tuple[str, str]]) -> list[str]:
    parts, x = [], 60
    for name, colour in names:
        parts.append(f'<rect class="{colour}" x="{x}" y="295" width="11" height="11"/>')
        parts.append(_text(x + 17, 305, name, "start"))
        x += 42 + 6 * len(name)
    return parts


def _text(x: float, y: float, text: str, anchor: str = "middle", style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{text}</text>'


def _svg(width: int, height: int, title: str, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
    paper = f'<rect class="paper" width="{width}" height="{height}"/>'
    named = f'height="{height}" role="img"><title>{title}</title>'
    return "\n".join(
        [head + named, _STYLE, paper, _text(width / 2, 22, title, style="title"), *parts, "</svg>", ""]
    )
