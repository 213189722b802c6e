"""`probe.jsonl`: what a probe saw, one JSON object a line, bounded in size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..request import ProbeRequest
from ..writer import RecordFile

_EVERY = 10


class _Kind:
    """The name of an event, as `RecordFile` wants it."""

    def __init__(self, value: str) -> None:
        self.value = value


class ProbeFile:
    """Writes events; steps no longer one by one where there are many."""

    def __init__(self, path: Path, options: ProbeRequest) -> None:
        self._path = path
        self._options = options
        self._records = RecordFile(path)
        self._broken = False
        self.steps = 0
        self.truncated = False

    def write(self, event: str, **fields: Any) -> None:
        """Append one event."""
        kind: Any = _Kind(event)
        self._records.write(kind, **fields)

    def wants_step(self) -> bool:
        """Whether the next step is written whatever it holds."""
        if self._path.stat().st_size > self._options.bytes:
            return False
        return self.steps < self._options.steps or self.steps % _EVERY == 0

    def step(self, **fields: Any) -> None:
        """Number a step, and write it where it is wanted, or the first that is not finite."""
        first = not self._broken and bool(fields["nan"] or fields["inf"])
        self._broken = self._broken or first
        if first or self.wants_step():
            self.write("step", n=self.steps, **fields)
        else:
            self.truncated = True
        self.steps += 1
