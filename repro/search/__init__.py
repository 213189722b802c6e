"""Change-point search over an ordered list of candidates with noisy trials."""

from repro.search.core import Ask, ChangePointSearch
from repro.search.rates import RateEstimate, estimate_rate
from repro.search.verdict import Kind, Verdict

__all__ = ["Ask", "ChangePointSearch", "Kind", "RateEstimate", "Verdict", "estimate_rate"]
