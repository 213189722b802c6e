"""One trial in a cell with an empty kernel cache, so that what lies in it afterwards is the test's."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from repro.engines.base import Prepared
from repro.errors import NotReadyError, NotReproducedError
from repro.kernels.artefacts import Kernel, collect, find_disassembler
from repro.run import Order, Runner, Target
from repro.store.sound import read_sound_events
from repro.trial.records import Event

FOLDER = "kernels"
"""Below the state: records and caches of these trials."""

SLOWER = 10
"""How many times longer than a trial the compilation of one kernel for an absent GPU may take."""

INTERPRET = "TRITON_INTERPRET"

UNCONTAINED = ("venv", "host")
"""Engines under which a trial can do what its user can, so that reading what it made risks nothing more."""


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What a cell made of a test's kernels.

    Args:
        cell: its id, with the environment variables that were added.
        kernels: all that were compiled.
        outcome: of the trial.
        cache: where the files lie.
        profile: rows of torch's profiler, longest first.
        nsight: rows of Nsight Compute.
        why_no_profile: reasons, where one was asked for.
        refused: by kernel, why it could not be compiled for a GPU that is not there.
    """

    cell: str
    kernels: Sequence[Kernel]
    outcome: str = ""
    cache: Path = Path()
    profile: Sequence[Mapping[str, Any]] = ()
    nsight: Sequence[Mapping[str, Any]] = ()
    why_no_profile: Sequence[str] = field(default_factory=list)
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is run, and how.

    Args:
        seed: of the trial.
        gpu: index of the GPU to use, or None.
        env: environment variables on top of the cell's own.
        profile: whether a profiler looks at it.
        arch: compute capability, such as 90, of a GPU that is not there: the trial runs under Triton's
            interpreter, and what it launches is compiled for that; None to compile for the GPU in use.
        disassembler: an nvdisasm of this machine, for machine code that the cell left without a text; None
            for one on PATH where trials run on this machine itself, and for none where in a container.
    """

    seed: int = 0
    gpu: int | None = None
    env: tuple[tuple[str, str], ...] = ()
    profile: bool = False
    arch: int | None = None
    disassembler: str | None = None


def compile_in(runner: Runner, target: Target, prepared: Prepared, wanted: Wanted) -> Compiled:
    """Run one trial and collect what it compiled.

    Raises:
        NotReadyError: the cell interprets its kernels, or the engine or the GPU failed.
        NotReproducedError: the test did not run.
        Interrupted: as `Runner.run`.
    """
    check_compiles(target, wanted)
    cache = runner.state / FOLDER / "cache" / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.urandom(3).hex()}"
    cache.mkdir(parents=True)
    order = Order(
        seeds=[wanted.seed] * (2 if wanted.profile else 1),
        gpu=wanted.gpu,
        keep_inputs=0,
        env=(*wanted.env, *(((INTERPRET, "1"),) if wanted.arch else ())),
        aside=FOLDER,
        once=True,
        cache=cache,
        extra={"machine_code": True, "profile": wanted.profile, "compile_for": wanted.arch or 0},
    )
    ran = _patient(runner, wanted).run(target, prepared, order)
    ran.require(f"the trial could not run in {target.cell.id}")
    events = list(read_sound_events(ran.folders[-1] / "records.jsonl", asked=order.asked))
    ends = [event for event in events if event["event"] == Event.END]
    if not ends:
        raise NotReproducedError(
            f"the test did not run in {target.cell.id}: {ran.gave_up or 'it left no record'}",
            why="kernels are compiled by a trial",
            next_step="repro matrix, which says what becomes of it",
        )
    profiles = [event for event in events if event["event"] == Event.PROFILE]
    return Compiled(
        cell=_name(target, wanted),
        kernels=collect(cache, disassembler=_disassembler(runner, wanted)),
        outcome=str(ends[-1]["outcome"]),
        cache=cache,
        profile=[row for event in profiles for row in event.get("kernels", ())],
        nsight=[row for event in profiles for row in event.get("nsight", ())],
        why_no_profile=[str(event["reason"]) for event in profiles if event.get("reason")],
        refused=_refused(events),
    )


def _disassembler(runner: Runner, wanted: Wanted) -> str | None:
    """The program of this machine that may read what the trial compiled.

    A container's machine code is other people's bytes: it is turned into text in there, or nowhere unasked.
    """
    here = find_disassembler() if runner.engine.name in UNCONTAINED else None
    return wanted.disassembler or here


def _patient(runner: Runner, wanted: Wanted) -> Runner:
    """A runner that gives a compiler more time than a trial has, where it is no part of one."""
    limit = runner.limits.trial_timeout * (SLOWER if wanted.arch else 1)
    return replace(runner, limits=replace(runner.limits, trial_timeout=limit))


def _name(target: Target, wanted: Wanted) -> str:
    """The cell, what it is compiled for, and the variables that were added."""
    arch = [f"for sm_{wanted.arch}"] if wanted.arch else []
    return " ".join([target.cell.id, *arch, *(f"{name}={value}" for name, value in wanted.env)])


def _refused(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    told = [event for event in events if event["event"] == Event.COMPILED and event.get("why")]
    return {str(event["kernel"]): str(event["why"]) for event in told}


def check_compiles(target: Target, wanted: Wanted) -> None:
    """Refuse a cell in which nothing is compiled.

    Raises:
        NotReadyError: with what to do instead.
    """
    settings = {**dict(target.cell.env), **dict(wanted.env)}
    if wanted.arch or (target.cell.on_gpu and settings.get(INTERPRET, "0") in ("", "0")):
        return
    raise NotReadyError(
        f"in {target.cell.id} nothing is compiled: its kernels run under Triton's interpreter",
        why="code is generated for a GPU",
        next_step="--arch sm_90, which compiles for a GPU that is not here; --profile gpu on a machine "
        "with one; or compare two caches of Triton: repro kernels --cache DIR --against-cache DIR",
    )
