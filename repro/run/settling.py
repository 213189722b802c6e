"""What became of a block: how many of its trials ended, and what its process died of."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.engines.base import Exit
from repro.errors import NotReadyError
from repro.store.sound import read_sound_events
from repro.trial.plain import open_plain, plain_size, put_aside, read_plain
from repro.trial.records import Event, Outcome

_Record = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What became of one process.

    Args:
        ended: trials, from its first on, that need no further try.
        died: how the process died, or "".
        infra: what failed beside the test, so that the trial after `ended` is worth another try, or "".
        fatal: what makes going on pointless, or "".
        busy: seconds of its trials, the first one at the pace of the others: it compiles and loads, too.
    """

    ended: int
    died: str = ""
    infra: str = ""
    fatal: str = ""
    busy: float = 0.0


def settle(
    records: Path, exit_: Exit | None, timed_out: float | None, asked: Collection[int] | None = None
) -> Settled:
    """Read a block whose process is gone; the trial that it died in gets its outcome, in the block's file.

    Args:
        records: the block's file.
        exit_: how the process ended, or None where it was killed for its time.
        timed_out: the limit it ran into, in seconds.
        asked: seeds that it was to run; what it says of others counts for nothing. None for any.

    Raises:
        NotReadyError: the disk is full.
    """
    events: list[_Record] = list(read_sound_events(records, asked=asked))
    busy = _busy(events)
    if not events or events[-1]["event"] not in (Event.BLOCK_END, Event.MISSING):
        events.append(_last_words(records, events, exit_, timed_out))
    ends = [event for event in events if event["event"] in (Event.END, Event.MISSING)]
    infra = next((event for event in ends if event.get("outcome") == Outcome.INFRA), None)
    finished = ends if infra is None else ends[: ends.index(infra)]
    ended = sum(event["event"] == Event.END for event in finished)
    if infra is not None:
        return Settled(ended=ended, infra=str(infra.get("message") or infra.get("reason")), busy=busy)
    died = str(events[-1].get("died") or "")
    if events[-1]["event"] == Event.MISSING:
        return Settled(ended=ended, died=died, fatal=_missing(events[-1]), busy=busy)
    died = died or ("" if ended else "the process ended without a trial")
    return Settled(ended=ended, died=died, busy=busy)


def _busy(events: Sequence[_Record]) -> float:
    starts, ends = _times(events, Event.START), _times(events, Event.END)
    if not starts or not ends:
        return 0.0
    if len(ends) < 3:
        return max(0.0, ends[-1] - starts[0])
    return max(0.0, ends[-1] - ends[0]) * len(ends) / (len(ends) - 1)


def _times(events: Sequence[_Record], kind: Event) -> list[float]:
    times = [event.get("time") for event in events if event["event"] == kind]
    return sorted(time for time in times if isinstance(time, int | float))


def _last_words(
    records: Path, events: Sequence[_Record], exit_: Exit | None, timed_out: float | None
) -> _Record:
    """Write what the process could not write any more: the end of its trial, or of the block."""
    outcome, message = _cause(exit_, timed_out)
    died = "" if outcome is Outcome.INFRA else message
    begun = next((event for event in reversed(events) if _is_start(event)), None)
    told = {"outcome": outcome, "message": message, "died": died}
    if begun is not None and not _has_ended(begun, events):
        trial = {"trial": begun["trial"], "seed": begun["seed"], "duration": None}
        return _append(records, {"event": Event.END, **trial, **told})
    if begun is not None:  # between two trials: no trial is to blame
        return _append(records, {"event": Event.BLOCK_END, "complete": False, "reason": message, **told})
    return _append(records, {"event": Event.MISSING, "reason": "died", **told})


def _is_start(event: _Record) -> bool:
    return event["event"] == Event.START and "trial" in event and "seed" in event


def _has_ended(begun: _Record, events: Sequence[_Record]) -> bool:
    return any(event["event"] == Event.END and event.get("trial") == begun["trial"] for event in events)


def _missing(event: _Record) -> str:
    near = ", ".join(map(str, event.get("nearest") or ()))
    message = str(event.get("message") or event.get("reason") or "the test is not there")
    return f"{message}; the nearest are {near}" if near else message


def _cause(exit_: Exit | None, timed_out: float | None) -> tuple[Outcome, str]:
    if exit_ is None:
        return Outcome.TIMED_OUT, f"no sign of life for {timed_out:g} s; the process was killed"
    if exit_.infra:
        return Outcome.INFRA, exit_.infra
    how = f"ended with status {exit_.code}"
    if exit_.out_of_memory:
        how = "ran out of memory"
    elif exit_.signal:
        how = f"was ended by signal {exit_.signal}"
    return Outcome.CRASHED, f"the process {how}" + (f": {exit_.detail}" if exit_.detail else "")


def _append(records: Path, event: _Record) -> _Record:
    """Add the kit's own line to a block's evidence, on a line of its own.

    Raises:
        NotReadyError: the disk is full.
    """
    cut = not read_plain(records).endswith(b"\n") and plain_size(records) > 0
    try:
        put_aside(records)
        with open_plain(records, append=True) as file:
            line = json.dumps({**event, "by": "kit", "time": time.time()}).encode()
            file.write((b"\n" if cut else b"") + line + b"\n")
    except OSError as error:
        raise NotReadyError(
            f"cannot record to {records}: {error.strerror}",
            why="the disk is full or the folder is read-only",
            next_step="make room, then run the same command again; it goes on where it stopped",
        ) from None
    return event
