"""Charts of a row each: rates of cells, candidates of a search, what a search believes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from repro import ui
from repro.report.charts.drawing import WIDE, figure, svg
from repro.report.model import CellRate, Search
from repro.report.words import interval, share
from repro.stats import Rate, anytime


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
    return figure(_bars(bars, told), told)


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
    return figure(_bars(bars, told), told)


def belief_chart(search: Search) -> str:
    """How likely the change is at each place, when the search ended."""
    if not search.belief:
        return ""
    rows = "".join(
        f'<li class="marked"><span class="name">{escape(place)}</span>'
        + svg(
            f'<line class="track" x1="0" x2="{WIDE}" y1="9" y2="9"/>'
            f'<rect class="failing" x="0" y="3" width="{max(probability * WIDE, 1):.1f}" height="12"/>',
            escape(f"{place}: {ui.percent(probability)}"),
            18,
        )
        + f'<span class="value">{ui.percent(probability)}</span></li>'
        for place, probability in search.belief
    )
    told = f"Where the change along {search.axis} is: the posterior probability of each place."
    return figure(f'<ol class="bars" aria-label="{escape(told)}">{rows}</ol>', told)


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
        f"{svg(drawn, title, 18)}"
        f'<span class="value">{bar.value}</span></li>'
    )


def _ceiling(rate: float) -> float:
    """The end of an axis of rates: a round number not below the largest."""
    steps = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
    return next((step for step in steps if rate <= step), 1.0)
