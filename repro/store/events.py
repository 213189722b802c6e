"""What the lines of a block file say, as records that the ledger can take in."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from repro.errors import NotReadyError
from repro.store.blocks import Request, gpu_model, text, whole
from repro.store.model import Running
from repro.store.sound import unsound, without_controls
from repro.trial.records import SCHEMA, Event, Outcome

_CONTROLS = re.compile(rb"\\u|[^\x00-\x7f]")
"""What a line has that holds anything but printable ASCII; most have none, and are taken as they are."""

_PASSING = ("event", "block", "mode", "test", "time", "pid")
"""Fields of a `cell` event that differ between two processes in the same environment."""


@dataclass
class Cursor:
    """How far a block file was read, and what the lines so far leave open."""

    offset: int = 0
    lines: int = 0
    garbled: int = 0
    gpu: str = ""
    facts: dict[str, Any] | None = None
    running: Running | None = None
    next_trial: int = 0
    time: float = 0.0
    ended: bool = False


@dataclass(frozen=True, kw_only=True)
class EndRecord:
    """A trial that ended, as the block file has it."""

    line: int
    gpu: str
    seed: int
    repetition: int
    outcome: Outcome
    time: float
    seconds: float | None
    message: str
    signature: tuple[str, str] | None
    comparisons: str | None


@dataclass(frozen=True, kw_only=True)
class InputsRecord:
    """Inputs that were kept, as the block file has it."""

    line: int
    gpu: str
    seed: int
    repetition: int
    path: str
    sha256: str
    failed_again: bool | None
    same_elements: bool | None


@dataclass
class Batch:
    """What one stretch of a block file holds."""

    ends: list[EndRecord] = field(default_factory=list)
    inputs: list[InputsRecord] = field(default_factory=list)


def read_batch(lines: list[bytes], cursor: Cursor, request: Request) -> Batch:
    """Read lines into a batch and move the cursor past them; lines that are no record are counted.

    Raises:
        NotReadyError: when a newer kit wrote the block.
    """
    batch = Batch()
    for line in lines:
        cursor.offset += len(line)
        cursor.lines += 1
        if not line.strip():
            continue
        try:
            event = json.loads(line)
            if wrong := unsound(event):
                raise ValueError(wrong)
            told = without_controls(event) if _CONTROLS.search(line) else event
            _read_event(told, batch, cursor, request)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            cursor.garbled += 1
    return batch


def _read_event(event: Mapping[str, Any], batch: Batch, cursor: Cursor, request: Request) -> None:
    kind = event["event"]
    cursor.time = _finite(event.get("time") or cursor.time)  # a line without one follows the line before
    if kind == Event.END:
        end, number = _end(event, cursor, request), whole(event.get("trial", cursor.next_trial))
        batch.ends.append(end)
        cursor.running, cursor.next_trial = None, number + 1
    elif kind == Event.START:
        seed, repetition = request.trial_of(event)
        cursor.running = Running(seed=seed, repetition=repetition, since=cursor.time)
    elif kind == Event.CELL:
        _check_schema(event)
        cursor.facts = {name: value for name, value in event.items() if name not in _PASSING}
        cursor.gpu = _gpu_seen(event, request)
    elif kind == Event.INPUTS:
        batch.inputs.append(_inputs(event, cursor, request))
    elif kind == Event.MISSING:
        batch.ends.append(_missing(event, cursor, request))
        cursor.ended = True
    elif kind == Event.BLOCK_END:
        cursor.ended = True


def _end(event: Mapping[str, Any], cursor: Cursor, request: Request) -> EndRecord:
    outcome = Outcome(event["outcome"])
    seed, repetition = request.trial_of(event)
    seconds = event.get("duration")
    return EndRecord(
        line=cursor.lines,
        gpu=cursor.gpu,
        seed=seed,
        repetition=repetition,
        outcome=outcome,
        time=cursor.time,
        seconds=None if seconds is None else float(seconds),
        message=text(event.get("message")),
        signature=_signature(event.get("signature")),
        comparisons=_comparisons(event.get("comparisons"), outcome),
    )


def _missing(event: Mapping[str, Any], cursor: Cursor, request: Request) -> EndRecord:
    """The end of a block that has no trial to pin it on: the next trial's, so that it shows in a tally."""
    seed, repetition = request.trial_at(cursor.next_trial)
    return EndRecord(
        line=cursor.lines,
        gpu=cursor.gpu,
        seed=seed,
        repetition=repetition,
        outcome=Outcome(event.get("outcome", Outcome.TEST_MISSING)),
        time=cursor.time,
        seconds=None,
        message=text(event.get("message") or event.get("reason")),
        signature=None,
        comparisons=None,
    )


def _inputs(event: Mapping[str, Any], cursor: Cursor, request: Request) -> InputsRecord:
    seed, repetition = request.trial_of(event)
    return InputsRecord(
        line=cursor.lines,
        gpu=cursor.gpu,
        seed=seed,
        repetition=repetition,
        path=text(event.get("path")),
        sha256=text(event.get("sha256")),
        failed_again=_maybe(event.get("failed_again")),
        same_elements=_maybe(event.get("same_elements")),
    )


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"no time: {value!r}")
    return number


def _maybe(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _signature(signature: Any) -> tuple[str, str] | None:
    """A signature's key (its own, or the hash of what it says) and its JSON."""
    if not signature:
        return None
    facts = json.dumps(signature, sort_keys=True)
    own = signature.get("key") if isinstance(signature, dict) else None
    return text(own) or hashlib.sha256(facts.encode()).hexdigest()[:12], facts


def _comparisons(comparisons: Any, outcome: Outcome) -> str | None:
    """What was measured, without the elements of trials that passed: they are most of the bytes."""
    if not comparisons:
        return None
    if outcome is Outcome.PASSED:
        comparisons = [
            {name: value for name, value in one.items() if not _elements(value)} for one in comparisons
        ]
    return json.dumps(comparisons, separators=(",", ":"))


def _elements(value: Any) -> bool:
    """Whether a field of a comparison lists single elements, each with index and values."""
    return isinstance(value[0] if isinstance(value, list) and value else value, dict)


def _gpu_seen(event: Mapping[str, Any], request: Request) -> str:
    """The GPU that the process saw; the one it was given, where it had no torch to look with."""
    seen = gpu_model(event.get("gpu"))
    return seen or ("" if "torch" in (event.get("imported") or ()) else request.gpu)


def _check_schema(event: Mapping[str, Any]) -> None:
    version = event.get("schema", SCHEMA)
    if type(version) is int and version > SCHEMA:
        raise NotReadyError(
            f"A block file has version {version}; this kit knows versions up to {SCHEMA}.",
            why="A newer kit wrote it.",
            next_step="Update the kit, or name another folder for this one's records.",
        )
