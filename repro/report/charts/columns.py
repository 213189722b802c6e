"""Charts along an axis: sizes of errors, places of failing elements, distances to a jump."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from repro import ui
from repro.report.charts.drawing import WIDE, figure, svg
from repro.report.model import Anatomy, Dimension
from repro.report.words import number

BINS = 48


def error_chart(anatomy: Anatomy) -> str:
    """How large errors are in units of the tolerance, in trials that passed and in trials that failed."""
    passing, failing = anatomy.passing_ratios, anatomy.failing_ratios
    finite = [ratio for ratio in (*passing, *failing) if math.isfinite(ratio) and ratio > 0]
    if not finite or not failing:
        return ""
    low = min(math.floor(math.log10(min(finite))), -1)
    high = max(math.ceil(math.log10(max(finite))), 1)
    counts = [_binned(ratios, low, high) for ratios in (passing, failing)]
    # The number of trials that passed is no matter: each of the two is drawn to its own height.
    drawn = "".join(
        _columns(heights, kind, 100) for heights, kind in zip(counts, ("passing", "failing"), strict=True)
    )
    at = (0 - low) / (high - low) * WIDE
    drawn += f'<line class="limit" x1="{at:.1f}" x2="{at:.1f}" y1="-6" y2="100"/>'
    drawn += f'<line class="base" x1="0" x2="{WIDE}" y1="100" y2="100"/>'
    key = (
        f'<p class="key"><span><i class="passes"></i>{ui.count(len(passing), "passing trial")}</span>'
        f'<span><i class="fails"></i>{ui.count(len(failing), "failing trial")}</span>'
        "<span>dashed: the tolerance</span></p>"
    )
    told = (
        "Largest error of the comparison that fails, in units of its tolerance, a trial; logarithmic. Passing"
        " and failing trials are each drawn to their own height."
    )
    drawing = svg(drawn, escape(told), 100)
    return figure(f'{key}<div class="tall">{drawing}</div>{_decades(low, high)}', told)


def _binned(ratios: Sequence[float], low: int, high: int) -> list[int]:
    """Counts over equal parts of the logarithm; 0 goes to the first part, infinity and NaN to the last."""
    counts = [0] * BINS
    for ratio in ratios:
        if math.isfinite(ratio) and ratio > 0:
            place = (math.log10(ratio) - low) / (high - low) * BINS
        else:
            place = 0 if ratio == 0 else BINS
        counts[min(int(place), BINS - 1)] += 1
    return counts


def _columns(counts: Sequence[int], kind: str, height: int) -> str:
    most, width = max(max(counts, default=0), 1), WIDE / max(len(counts), 1)
    return "".join(
        f'<rect class="{kind}" x="{index * width + width * 0.08:.1f}" y="{height - tall:.1f}"'
        f' width="{width * 0.84:.1f}" height="{tall:.1f}"/>'
        for index, count in enumerate(counts)
        if count and (tall := max(count / most * height, 1.5))
    )


def _decades(low: int, high: int) -> str:
    step = max(1, math.ceil((high - low) / 6))
    marks = [decade for decade in range(low, high + 1) if decade % step == 0]
    return f'<div class="axis">{"".join(_mark(mark, low, high) for mark in marks)}</div>'


def _mark(mark: int, low: int, high: int) -> str:
    left = (mark - low) / (high - low) * 100
    return f'<span class="{_edge(mark, low, high)}" style="left:{left:.2f}%">{_power(mark)}</span>'


def _edge(mark: int, low: int, high: int) -> str:
    return "first" if mark == low else "last" if mark == high else ""


def _power(decade: int) -> str:
    return (
        "1 ×"
        if decade == 0
        else f"{number(10.0**decade)} ×"
        if abs(decade) <= 3
        else f"10<sup>{decade}</sup> ×"
    )


def jump_chart(offsets: Sequence[float]) -> str:
    """Where the coordinates of failing elements lie around a jump of the derivative."""
    finite = [offset for offset in offsets if math.isfinite(offset)]
    if not finite:
        return ""
    reach = max(1.0, *map(abs, finite)) * 1.1
    drawn = f'<line class="base" x1="0" x2="{WIDE}" y1="60" y2="60"/>'
    drawn += f'<line class="limit" x1="{WIDE / 2}" x2="{WIDE / 2}" y1="0" y2="60"/>'
    for offset in finite:
        at = (offset / reach + 1.0) * WIDE / 2
        drawn += f'<rect class="failing" x="{at - 3:.1f}" y="18" width="6" height="42"/>'
    told = (
        f"Coordinates of {ui.count(len(finite), 'failing element')} around the jump of the derivative that is"
        " nearest (dashed), in units of the coordinate's last place."
    )
    marks = zip((0, 50, 100), (-reach, 0.0, reach), ("first", "", "last"), strict=True)
    axis = "".join(
        f'<span class="{kind}" style="left:{left}%">{number(value)} ulp</span>' for left, value, kind in marks
    )
    drawing = svg(drawn, escape(told), 60)
    return figure(f'<div class="tall">{drawing}</div><div class="axis">{axis}</div>', told)


def place_chart(dimensions: Sequence[Dimension]) -> str:
    """Where failing elements lie along each dimension of the tensor."""
    if not dimensions:
        return ""
    panels = "".join(_panel(dimension) for dimension in dimensions)
    told = (
        "Where the failing elements lie along each dimension of the tensor; the dashed line is where all"
        " columns would end if they lay evenly."
    )
    return figure(f'<div class="panels">{panels}</div>', told)


def _panel(dimension: Dimension) -> str:
    counts = dimension.counts
    most, even = max(max(counts), 1), sum(counts) / len(counts)
    level = 100 - even / most * 100
    drawn = _columns(counts, "failing", 100)
    drawn += f'<line class="even" x1="0" x2="{WIDE}" y1="{level:.1f}" y2="{level:.1f}"/>'
    drawn += f'<line class="base" x1="0" x2="{WIDE}" y1="100" y2="100"/>'
    title = escape(f"dimension {dimension.number}: {', '.join(map(str, counts))}")
    return (
        f'<div class="small"><p>dimension {dimension.number}, size {dimension.size:,}</p>'
        f"{svg(drawn, title, 100)}"
        f'<div class="axis"><span class="first">0</span>'
        f'<span class="last" style="left:100%">{dimension.size - 1:,}</span></div></div>'
    )
