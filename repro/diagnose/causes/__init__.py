"""One module a suspected cause. Each reads the evidence alone and gives its verdict on its own cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from repro.diagnose.causes import (
    autotuning,
    compiler,
    domain,
    draw,
    formula,
    gradients,
    instability,
    jump,
    memory,
    race,
    summation,
    tolerance,
)
from repro.diagnose.evidence import Evidence
from repro.diagnose.model import Cause, Verdict

_MODULES = (
    *(domain, jump, memory, autotuning, race, compiler, formula),
    *(gradients, summation, instability, tolerance, draw),
)
"""The most specific first: of two that explain the same share, the earlier one says more."""

CAUSES: Sequence[tuple[str, Callable[[Evidence], Cause]]] = [
    (module.NAME, module.weigh) for module in _MODULES
]
ADVICE: Mapping[str, str] = {module.NAME: module.ADVICE for module in _MODULES}
"""By cause, what to do about it."""

_ORDER = [name for name, _ in CAUSES]
_VERDICTS = [Verdict.SUPPORTED, Verdict.UNTESTED, Verdict.RULED_OUT]


def weigh_all(evidence: Evidence) -> list[Cause]:
    """Weigh every cause: the supported ones first by share, then what is untested, then what is ruled out."""
    weighed = [weigh(evidence) for _, weigh in CAUSES]
    return sorted(
        weighed,
        key=lambda cause: (
            _VERDICTS.index(cause.verdict),
            -round(cause.share or 0.0, 1),
            _ORDER.index(cause.name),
        ),
    )
