"""Charts as inline SVG without any text in it: labels are HTML beside it, and stay readable when small."""

from repro.report.charts.bars import belief_chart, rate_chart, search_chart
from repro.report.charts.columns import error_chart, jump_chart, place_chart

__all__ = ["belief_chart", "error_chart", "jump_chart", "place_chart", "rate_chart", "search_chart"]
