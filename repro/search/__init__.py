"""Change-point search over an ordered list of candidates with noisy trials."""

from repro.search.core import Ask, ChangePointSearch
from repro.search.posterior import DEFAULT_MODEL, Model
from repro.search.rates import RateEstimate, estimate_rate
from repro.search.verdict import Kind, Verdict

__all__ = [
    "DEFAULT_MODEL",
    "Ask",
    "ChangePointSearch",
    "Kind",
    "Model",
    "RateEstimate",
    "Verdict",
    "estimate_rate",
]
