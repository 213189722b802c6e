"""The order for one trial that is looked at, beside the ledger."""

from __future__ import annotations

from collections.abc import Mapping

from repro.bisect.kept import Inputs
from repro.run import Order
from repro.trial.records import Mode

FOLDER = "looks"
"""Of the state: takes the records of such trials."""


def look(
    seed: int,
    inputs: Inputs | None,
    *,
    gpu: int | None,
    extra: Mapping[str, object],
    terminal: bool = False,
) -> Order:
    """One trial in a process of its own: what kept inputs give, else what the seed draws.

    Nothing of it enters the ledger: how it is looked at slows it down or stops it, so it is no trial.

    Args:
        seed: of the trial; where kept inputs are a file, their identity takes its place.
        inputs: kept inputs, or None.
        gpu: index of the GPU to use, or None.
        extra: fields of the request that say how it is looked at.
        terminal: let the process have the user's terminal.
    """
    replay = {inputs.identity: inputs.file} if inputs is not None and inputs.file is not None else {}
    return Order(
        seeds=[*replay] or [seed],
        mode=Mode.REPLAY if replay else Mode.SEEDS,
        gpu=gpu,
        keep_inputs=0,
        replay=replay,
        aside=FOLDER,
        once=True,
        extra=extra,
        terminal=terminal,
    )
