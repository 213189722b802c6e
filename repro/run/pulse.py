"""Whether a process still writes records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from repro.engines.base import Limits
from repro.trial.plain import plain_size, read_plain


class Pulse:
    """Whether a process still writes records, and how long it may be silent."""

    def __init__(self, records: Path, limits: Limits, clock: Callable[[], float]) -> None:
        self._records, self._limits, self._clock = records, limits, clock
        self._size, self._since, self._begun = 0, clock(), False

    def beats(self) -> bool:
        """Whether there are new records."""
        size = plain_size(self._records)
        if size == self._size:
            return False
        self._size, self._since = size, self._clock()
        self._begun = self._begun or _begun(self._records)
        return True

    @property
    def silent(self) -> float:
        """Seconds since the last record."""
        return self._clock() - self._since

    @property
    def limit(self) -> float:
        """Seconds that it may be silent."""
        return self._limits.trial_timeout if self._begun else self._limits.startup_timeout


def _begun(records: Path) -> bool:
    """Whether a first trial has begun."""
    return b'{"event": "start"' in read_plain(records)
