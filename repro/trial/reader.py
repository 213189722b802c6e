"""Reads block files, finished, torn or growing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

from .plain import open_plain, read_plain

OnGarbled = Callable[[int, str], None]
"""Takes the number (from 1) and the beginning of a line that holds no event."""


def read_events(path: Path, *, on_garbled: Optional[OnGarbled] = None) -> Iterator[Dict[str, Any]]:
    """The events of a block file, in order; none where there is no such file, or something else in its place.

    A last line without its end is what a cut leaves behind: it is passed over in silence. Any other line
    that holds no event goes to `on_garbled`.
    """
    data = read_plain(path)
    for number, line in enumerate(data.split(b"\n"), start=1):
        event = _event(line)
        if event is not None:
            yield event
        elif line.strip() and on_garbled and not data.endswith(line):
            on_garbled(number, line[:80].decode("ascii", "backslashreplace"))


class Follower:
    """Reads a block file while it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def poll(self) -> List[Dict[str, Any]]:
        """The events whose lines were completed since the last call."""
        try:
            with open_plain(self._path) as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [event for event in map(_event, whole.split(b"\n")) if event is not None]


def _event(line: bytes) -> Optional[Dict[str, Any]]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("event"), str) else None
