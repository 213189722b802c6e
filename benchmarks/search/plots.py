"""Plots as SVG, drawn by hand: two are not worth a plotting library."""

from __future__ import annotations

from benchmarks.search.worlds import STEPS

Rows = dict[str, dict[str, float]]

GOALS = ((0.2, 0.8), (0, 0.3), (0, 0.1), (0.05, 0.3))
SHOWN = (("ours, build 0", "#1b6ca8"), ("ours, ledger", "#7fb3d9"), ("git_bayesect", "#c0504d"))


def cost_plot(rows: Rows) -> str:
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


def accuracy_plot(rows: Rows) -> str:
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
