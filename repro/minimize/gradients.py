"""The gradients of the smallest case: finite differences, and torch's gradcheck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from repro.inspect.plain import finite
from repro.inspect.records import Probe, read
from repro.inspect.words import gradient_sentences
from repro.minimize.blocks import Blocks
from repro.minimize.trying import Failure
from repro.trial.request import ProbeRequest

CHECKED = 64
"""Elements of each compared gradient that gradcheck gets: a smallest case seldom has more."""

SECONDS = 60.0
"""Time for the differences, over which no further element is begun."""


def look_at_gradients(blocks: Blocks, case: Mapping[str, object], failure: Failure) -> Probe | None:
    """Run the failing trial of a case under the probe; None where it compared no gradient.

    Args:
        blocks: runs it.
        case: what a request says of the case.
        failure: of the case.

    Raises:
        NotReadyError, Interrupted: as `Runner.run`.
    """
    if not failure.record.get("digest"):  # it compared no tensors at all
        return None
    options = ProbeRequest(gradcheck=CHECKED, elements=CHECKED, seconds=SECONDS, perturbed=0)
    inputs = failure.inputs
    seed = failure.seed if inputs is None else inputs.identity
    _, folder = blocks.run([seed], {**case, "probe": asdict(options)}, inputs)
    found = read(folder / "probe.jsonl")
    measured = any(one.side and one.why is None for one in found.derivatives)
    return found if measured or found.gradchecks else None


def gradients_to_json(found: Probe | None) -> dict[str, Any] | None:
    """What was measured, as plain values, and in words."""
    if found is None:
        return None
    told: dict[str, Any] = finite(
        {
            "said": gradient_sentences(found),
            "derivatives": [asdict(one) for one in found.derivatives],
            "gradchecks": [asdict(one) for one in found.gradchecks],
        }
    )
    return told
