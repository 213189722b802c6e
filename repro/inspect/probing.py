"""Probing: one trial run in a cell under a probe, without a trace in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from repro.bisect.kept import Inputs
from repro.engines.base import Prepared
from repro.errors import NotReproducedError
from repro.inspect.looking import look
from repro.inspect.records import Probe, read
from repro.run import Runner, Target
from repro.trial.request import ProbeRequest

SLOWER = 10
"""How many times longer than a trial each run under the probe may take."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which trial to look into: that of a seed, or the one that kept inputs give.

    Args:
        seed: of the trial; with `inputs`, the seed that they came from.
        inputs: kept inputs, or None for what the seed draws.
        gpu: index of the GPU to use, or None.
        options: how much is written and measured.
        case: what a request says of another case than the test file's; empty for that one.
    """

    seed: int
    inputs: Inputs | None = None
    gpu: int | None = None
    options: ProbeRequest = field(default_factory=ProbeRequest)
    case: Mapping[str, object] = field(default_factory=dict)


def probe(runner: Runner, target: Target, prepared: Prepared, wanted: Wanted) -> Probe:
    """Run one trial of a prepared target under a probe, in a process of its own.

    Nothing of it enters the ledger: a probed trial is slower and takes more memory, so it is no trial.

    Raises:
        NotReproducedError: the test is not there, or its process died before the probe began.
        NotReadyError: the engine, the disk or the GPU failed.
        Interrupted: as `Runner.run`.
    """
    extra = {**wanted.case, "probe": asdict(wanted.options)}
    order = look(wanted.seed, wanted.inputs, gpu=wanted.gpu, extra=extra)
    limits = replace(runner.limits, trial_timeout=runner.limits.trial_timeout * SLOWER)
    ran = replace(runner, limits=limits).run(target, prepared, order)
    ran.require(f"the probe could not run in {target.cell.id}")
    path = ran.folders[-1] / "probe.jsonl"
    if not path.exists():
        raise NotReproducedError(
            f"nothing could be probed in {target.cell.id}: {ran.gave_up or 'its process left no record'}",
            why="the trial has to begin before it can be looked into",
            next_step="repro matrix, which says what becomes of it without a probe",
        )
    return read(path)
