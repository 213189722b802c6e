"""Probing: one trial run in a cell under a probe, without a trace in the ledger."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from repro.bisect.kept import Inputs
from repro.engines.base import Prepared
from repro.errors import NotReproducedError
from repro.inspect.records import Probe, read
from repro.run import Order, Runner, Target
from repro.trial.records import Mode

SLOWER = 10
"""How many times longer than a trial each run under the probe may take."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How much a probe writes and measures.

    Args:
        steps: steps written one by one; after that every tenth, and every one with a first NaN.
        bytes: size of the file at which steps are no longer written.
        derivatives: whether compared gradients are held against differences.
        elements: failing elements of a comparison that are looked at, at most.
        controls: passing elements of the same tensor, at most.
        differentiated: failing elements of a comparison whose derivative is measured, at most.
        seconds: time for the differences, over which no further element is begun.
    """

    steps: int = 2000
    bytes: int = 64 * 2**20
    derivatives: bool = True
    elements: int = 20
    controls: int = 5
    differentiated: int = 20
    seconds: float = 120.0


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which trial to look into: that of a seed, or the one that kept inputs give.

    Args:
        seed: of the trial; with `inputs`, the seed that they came from.
        inputs: kept inputs, or None for what the seed draws.
        gpu: index of the GPU to use, or None.
        options: how much is written and measured.
    """

    seed: int
    inputs: Inputs | None = None
    gpu: int | None = None
    options: Options = field(default_factory=Options)


def probe(runner: Runner, target: Target, prepared: Prepared, wanted: Wanted) -> Probe:
    """Run one trial of a prepared target under a probe, in a process of its own.

    Nothing of it enters the ledger: a probed trial is slower and takes more memory, so it is no trial.

    Raises:
        NotReproducedError: the test is not there, or its process died before the probe began.
        NotReadyError: the engine, the disk or the GPU failed.
        Interrupted: as `Runner.run`.
    """
    inputs = wanted.inputs
    by_file = inputs is not None and inputs.file is not None
    seed = inputs.identity if inputs is not None and by_file else wanted.seed
    order = Order(
        seeds=[seed],
        mode=Mode.REPLAY if by_file else Mode.SEEDS,
        gpu=wanted.gpu,
        keep_inputs=0,
        replay={seed: inputs.file} if inputs is not None and inputs.file is not None else {},
        aside="looks",
        once=True,
        extra={"probe": asdict(wanted.options)},
    )
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
