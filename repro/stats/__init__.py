"""What recorded trials mean: rates with intervals, comparisons, when to stop. Pure functions of counts.

    from repro.stats import Stopping, compare_paired, wilson

docs/statistics.md says what each number promises, with the sources of the formulas.
"""

from repro.stats.compare import (
    Comparison,
    Judged,
    PairedCounts,
    benjamini_hochberg,
    compare_paired,
    compare_unpaired,
    fisher,
    judge,
    mcnemar,
    mcnemar_anytime,
)
from repro.stats.rates import CONFIDENCE, Interval, Method, Rate, anytime, exact, wilson
from repro.stats.stopping import Decision, Reason, Stopping, clean_runs_needed, rate_ruled_out

__all__ = [
    "CONFIDENCE",
    "Comparison",
    "Decision",
    "Interval",
    "Judged",
    "Method",
    "PairedCounts",
    "Rate",
    "Reason",
    "Stopping",
    "anytime",
    "benjamini_hochberg",
    "clean_runs_needed",
    "compare_paired",
    "compare_unpaired",
    "exact",
    "fisher",
    "judge",
    "mcnemar",
    "mcnemar_anytime",
    "rate_ruled_out",
    "wilson",
]
