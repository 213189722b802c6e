"""What an adapter knows of an operator: asked in a cell, about failing elements of gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.bisect.kept import Inputs
from repro.config import SubjectSpec
from repro.engines.base import Prepared
from repro.errors import UsageError
from repro.run import Order, Runner, Target
from repro.store.sound import without_controls
from repro.trial.reader import read_events
from repro.trial.records import Mode

ELEMENTS = 20
"""Failing elements of a comparison that are asked about, at most; the worst first."""

Wanted = int | Inputs
"""A trial: of a seed, or of inputs that were kept."""


@dataclass(frozen=True, kw_only=True)
class Jump:
    """The jump of the operator's derivative that lies nearest to one failing element of a gradient.

    Args:
        seed: of the trial, or that its inputs came from.
        comparison: index of the comparison.
        leaf: which of the tensors that it compared; 0 unless it was nested.
        element: index in the compared tensors.
        argument: the operator's argument whose gradient it is.
        coordinate: of the element.
        place: of the jump, in the same unit.
        unit: such as "pixel".
        distance: between the two.
        distance_ulp: the same in units of the last place of the coordinate as computed.
        left, right: the derivative just before and just behind the jump, in float64, or None.
        more: what else the adapter said, such as the axis.
    """

    seed: int
    comparison: int
    leaf: int
    element: tuple[int, ...]
    argument: str
    coordinate: float
    place: float
    unit: str
    distance: float
    distance_ulp: float
    left: float | None
    right: float | None
    more: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Adapted:
    """What an adapter said.

    Args:
        jumps: next to the failing elements.
        predicted: by seed, the failure rate that jumps alone would make with such arguments.
        troubles: why it said less than it might have, each once.
    """

    jumps: tuple[Jump, ...] = ()
    predicted: Mapping[int, float] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()

    @property
    def predicted_rate(self) -> float | None:
        """The mean over the trials, or None where there is none."""
        return sum(self.predicted.values()) / len(self.predicted) if self.predicted else None


def adapter_of(spec: SubjectSpec) -> Path | None:
    """The adapter that matrix.yaml names, or None.

    Raises:
        UsageError: there is no such file.
    """
    if spec.adapter is None:
        return None
    path = spec.base / Path(spec.adapter).expanduser()
    if not path.is_file():
        raise UsageError(
            f"there is no adapter `{spec.adapter}`",
            why="its path starts from the folder that holds matrix.yaml",
            next_step="correct subject.adapter there, or leave it out: it is optional",
        )
    return path


def observe(
    runner: Runner,
    target: Target,
    prepared: Prepared,
    wanted: Sequence[Wanted],
    adapter: Path,
    *,
    gpu: int | None = None,
    elements: int = ELEMENTS,
) -> Adapted:
    """Run trials of a prepared target once more, in one process, and ask the adapter about what they compare.

    Nothing of it enters the ledger.

    Args:
        wanted: seeds or kept inputs; those that fail tell about jumps, all of them about the predicted rate.
        adapter: its file; see docs/adapters.md.
        gpu: index of the GPU to use, or None.
        elements: failing elements of a comparison, at most.

    Raises:
        NotReadyError: the engine, the disk or the GPU failed.
        Interrupted: as `Runner.run`.
    """
    files = {
        each.identity: each.file for each in wanted if isinstance(each, Inputs) and each.file is not None
    }
    seeds = {_number(each): _seed(each) for each in wanted}
    brought = {"name": adapter.name, "source": adapter.read_text(encoding="utf-8"), "elements": elements}
    order = Order(
        seeds=list(seeds),
        mode=Mode.REPLAY if files else Mode.SEEDS,
        gpu=gpu,
        keep_inputs=0,
        replay=files,
        aside="adapter",
        once=True,
        extra={"adapter": brought},
    )
    ran = runner.run(target, prepared, order)
    ran.require(f"the adapter could not be asked in {target.cell.id}")
    found = read_adapted(ran.folders[-1] / "adapter.jsonl", seeds)
    if not (found.jumps or found.predicted or found.troubles):
        why = ran.gave_up or "no comparison of these trials was of a gradient by a coordinate"
        return Adapted(troubles=(why,))
    return found


def read_adapted(path: Path, seeds: Mapping[int, int]) -> Adapted:
    """Read what an adapter said.

    Args:
        path: of `adapter.jsonl`; it need not be there.
        seeds: by number of a trial, the seed that it stands for.
    """
    jumps, predicted, troubles = [], {}, []
    for event in map(without_controls, read_events(path)):
        try:
            if event["event"] == "jump":
                jumps.append(_jump(event, seeds))
            elif event["event"] == "predicted":
                predicted[seeds.get(event["seed"], event["seed"])] = float(event["rate"])
            elif event["event"] == "trouble":
                troubles.append(str(event["message"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:  # an adapter is a user's own code
            troubles.append(f"the adapter's answer cannot be used: {type(error).__name__}: {error}")
    return Adapted(jumps=tuple(jumps), predicted=predicted, troubles=tuple(dict.fromkeys(troubles)))


_FIELDS = frozenset(
    (
        *("event", "seed", "comparison", "leaf", "element", "argument", "coordinate", "jump", "unit"),
        *("distance", "distance_ulp", "left", "right"),
    )
)


def _jump(event: Mapping[str, Any], seeds: Mapping[int, int]) -> Jump:
    return Jump(
        seed=seeds.get(event["seed"], event["seed"]),
        comparison=event["comparison"],
        leaf=event["leaf"],
        element=tuple(event["element"]),
        argument=event["argument"],
        coordinate=float(event["coordinate"]),
        place=float(event["jump"]),
        unit=str(event["unit"]),
        distance=float(event["distance"]),
        distance_ulp=float(event["distance_ulp"]),
        left=_number_or_none(event.get("left")),
        right=_number_or_none(event.get("right")),
        more={name: value for name, value in event.items() if name not in _FIELDS},
    )


def _number_or_none(value: object) -> float | None:
    return None if value is None else float(str(value))


def _number(each: Wanted) -> int:
    """What stands for a trial in the request: a seed, or the identity of kept inputs."""
    if isinstance(each, Inputs):
        return each.identity if each.file is not None else each.seed
    return each


def _seed(each: Wanted) -> int:
    return each.seed if isinstance(each, Inputs) else each
