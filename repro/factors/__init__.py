"""Environment variables as factors: which of them changes the failure rate, and which the numbers.

    from repro.factors import Varying, known_factors

docs/factors.md says how each is judged.
"""

from repro.factors.judging import Effect, Verdict, judge_factors, to_json
from repro.factors.known import Factor, known_factors
from repro.factors.varying import SAME, Varying

__all__ = ["SAME", "Effect", "Factor", "Varying", "Verdict", "judge_factors", "known_factors", "to_json"]
