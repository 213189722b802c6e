"""A trial looked into: run as it is, run under the probe, and run again and again with an input moved."""

from __future__ import annotations

import functools
import sys
import time
from typing import Any, Callable, ContextManager, Dict

from ..comparing.comparisons import Comparisons
from ..request import ProbeRequest
from .calls import Nudge
from .compared import Examiner
from .derivative import Derivatives
from .file import ProbeFile
from .gradcheck import GradientCheck
from .pairs import Values
from .perturbing import Perturbation
from .session import Session

_NO_TORCH = "the test loads no torch, so it has no operations to look at"

Run = Callable[[ContextManager[Any]], Dict[str, Any]]
"""Runs the trial once in a context; the fields of its `end` line."""


def look_into(
    run: Run, comparisons: Comparisons, file: ProbeFile, options: ProbeRequest, original: Dict[str, Any]
) -> None:
    """Run a trial again under the probe, and write down what it does.

    Args:
        run: runs the trial.
        comparisons: of the trial that runs.
        file: takes what is seen, after its `begin`.
        options: how much that is.
        original: the `end` line of the trial as it is.
    """
    began = time.monotonic()
    outcome = str(original["outcome"])
    if "torch" not in sys.modules:
        _end(file, began, outcome, original, _NO_TORCH)
        return
    torch: Any = sys.modules["torch"]
    moved = [_run_perturbed(run, comparisons, seed) for seed in range(options.perturbed)]
    session = Session(torch, lambda: comparisons.busy, file)
    examiner = Examiner(session, file, options, moved)
    with comparisons.observed_by(examiner.note):
        end = run(session.watching())
    again = functools.partial(_run_moved, run, comparisons)
    derivatives = Derivatives(again, file, options)
    if options.derivatives and examiner.elements:
        derivatives.measure(examiner.elements, session.leaves.tensors)
    if examiner.checked:
        GradientCheck(derivatives, file, torch).check(examiner.checked, session.leaves.tensors)
    _end(file, began, outcome, end, session.trouble)


def _run_perturbed(run: Run, comparisons: Comparisons, seed: int) -> Values:
    """Run the trial once more with all inputs moved by their own rounding, in float64 alone."""
    torch: Any = sys.modules["torch"]
    session = Session(torch, lambda: comparisons.busy, perturbation=Perturbation(torch, seed))
    values = Values(session)
    with comparisons.observed_by(values.note):
        run(session.watching())
    return values


def _run_moved(run: Run, comparisons: Comparisons, nudge: Nudge) -> Session:
    """Run the trial once more with one element of one input moved, for the values of its functions alone."""
    session = Session(sys.modules["torch"], lambda: comparisons.busy, nudge=nudge)
    try:
        with comparisons.passing_again():
            run(session.watching())
    finally:
        nudge.take_back()
    return session


def begin(file: ProbeFile, seed: int, mode: str) -> None:
    """Write the first line; before the trial runs, so that a process that dies leaves it behind."""
    torch: Any = sys.modules.get("torch")
    device = "cuda" if torch is not None and torch.cuda.is_available() else "cpu"
    version = None if torch is None else str(torch.__version__)
    file.write("begin", seed=seed, mode=mode, torch=version, device=device)


def _end(file: ProbeFile, began: float, original: str, end: Dict[str, Any], message: str) -> None:
    outcome = str(end["outcome"])
    file.write(
        "end",
        outcome=outcome,
        original=original,
        same_outcome=outcome == original,
        steps=file.steps,
        truncated=file.truncated,
        seconds=time.monotonic() - began,
        message=str(end.get("message") or "")[:2000],
        trouble=message,
    )
