"""Charts as inline SVG without any text in it: labels are HTML beside it, and stay readable when small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from repro import ui
from repro.report.model import Anatomy, CellRate, Dimension, Search
from repro.report.words import interval, number, share
from repro.stats import Rate, anytime

WIDE = 1000
"""Units of a chart's width; it is stretched to the room that there is."""

BINS = 48


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One row: a rate with its interval.

    Args:
        label: HTML.
        value: HTML, beside the bar.
        marked: whether it stands out.
    """

    label: str
    rate: Rate
    value: str
    marked: bool = False


def rate_chart(rows: Sequence[CellRate], *, many_gpus: bool) -> str:
    """Rates with their intervals, a row each."""
    bars = [
        Bar(
            label=f"<code>{escape(row.series.cell)}</code>"
            + (f"<br>{escape(row.series.gpu or 'CPU')}" if many_gpus else ""),
            rate=row.rate,
            value=f"{share(row.rate)} <small>{row.rate.failed:,}/{row.rate.trials:,}</small>",
        )
        for row in rows
    ]
    told = "Failure rate of each cell: the mark is what was observed, the band the 95 % interval."
    return _figure(_bars(bars, told), told)


def search_chart(search: Search) -> str:
    """What was seen at each candidate that a search tried."""
    bars = []
    for tried in search.tried:
        replayed = (
            f"<small>{tried.replayed_failed}/{tried.replayed} replayed</small>" if tried.replayed else ""
        )
        seen = f"{tried.failed}/{tried.trials} " if tried.trials else ""
        bars.append(
            Bar(
                label=escape(tried.label) + (" (the change)" if tried.first_bad else ""),
                rate=anytime(tried.failed, tried.trials)
                if tried.trials
                else anytime(tried.replayed_failed, tried.replayed),
                value=seen + replayed,
                marked=tried.first_bad,
            )
        )
    told = (
        f"Candidates that the search along {search.axis} tried, oldest first: failed/trials with the 95 %"
        " interval, and failing inputs replayed; where there are no other trials, the bar shows the replays."
    )
    return _figure(_bars(bars, told), told)


def belief_chart(search: Search) -> str:
    """How likely the change is at each place, when the search ended."""
    if not search.belief:
        return ""
    rows = "".join(
        f'<li class="marked"><span class="name">{escape(place)}</span>'
        + _svg(
            f'<line class="track" x1="0" x2="{WIDE}" y1="9" y2="9"/>'
            f'<rect class="failing" x="0" y="3" width="{max(probability * WIDE, 1):.1f}" height="12"/>',
            escape(f"{place}: {ui.percent(probability)}"),
            18,
        )
        + f'<span class="value">{ui.percent(probability)}</span></li>'
        for place, probability in search.belief
    )
    told = f"Where the change along {search.axis} is: the posterior probability of each place."
    return _figure(f'<ol class="bars" aria-label="{escape(told)}">{rows}</ol>', told)


def _bars(bars: Sequence[Bar], told: str) -> str:
    top = _ceiling(max((bar.rate.high for bar in bars if bar.rate.trials), default=1.0))
    rows = "".join(_bar(bar, top) for bar in bars)
    middle = f'<span style="left:50%">{ui.percent(top / 2)}</span>'
    last = f'<span class="last" style="left:100%">{ui.percent(top)}</span>'
    axis = f'<div class="axis"><span class="first">0 %</span>{middle}{last}</div>'
    name, value = '<span class="name"></span>', '<span class="value"></span>'
    ends = f'<li class="ends" aria-hidden="true">{name}{axis}{value}</li>'
    return f'<ol class="bars" aria-label="{escape(told)}">{rows}{ends}</ol>'


def _bar(bar: Bar, top: float) -> str:
    low, high = bar.rate.low / top * WIDE, min(bar.rate.high / top, 1.0) * WIDE
    kinds = ["quiet"] if not bar.rate.failed else []
    kinds += ["marked"] if bar.marked else []
    drawn = f'<line class="track" x1="0" x2="{WIDE}" y1="9" y2="9"/>'
    if bar.rate.rate is not None:
        at = f"{bar.rate.rate / top * WIDE:.1f}"
        drawn += (
            f'<rect class="interval" x="{low:.1f}" y="3" width="{max(high - low, 1):.1f}" height="12"/>'
            f'<line class="point" x1="{at}" x2="{at}" y1="2" y2="16"/>'
        )
    title = escape(f"{share(bar.rate)}, {interval(bar.rate)}")
    return (
        f'<li class="{" ".join(kinds)}"><span class="name">{bar.label}</span>'
        f"{_svg(drawn, title, 18)}"
        f'<span class="value">{bar.value}</span></li>'
    )


def _ceiling(rate: float) -> float:
    """The end of an axis of rates: a round number not below the largest."""
    steps = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
    return next((step for step in steps if rate <= step), 1.0)


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
    svg = _svg(drawn, escape(told), 100)
    return _figure(f'{key}<div class="tall">{svg}</div>{_decades(low, high)}', told)


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
    svg = _svg(drawn, escape(told), 60)
    return _figure(f'<div class="tall">{svg}</div><div class="axis">{axis}</div>', told)


def place_chart(dimensions: Sequence[Dimension]) -> str:
    """Where failing elements lie along each dimension of the tensor."""
    if not dimensions:
        return ""
    panels = "".join(_panel(dimension) for dimension in dimensions)
    told = (
        "Where the failing elements lie along each dimension of the tensor; the dashed line is where all"
        " columns would end if they lay evenly."
    )
    return _figure(f'<div class="panels">{panels}</div>', told)


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
        f"{_svg(drawn, title, 100)}"
        f'<div class="axis"><span class="first">0</span>'
        f'<span class="last" style="left:100%">{dimension.size - 1:,}</span></div></div>'
    )


def _svg(drawn: str, title: str, height: int) -> str:
    """A drawing that is stretched to its box; `title` is what a screen reader says of it, escaped."""
    box = f'viewBox="0 0 {WIDE} {height}" preserveAspectRatio="none" role="img"'
    return f"<svg {box}><title>{title}</title>{drawn}</svg>"


def _figure(body: str, told: str) -> str:
    return f"<figure>{body}<figcaption>{escape(told)}</figcaption></figure>"
