"""Appends events to a block file so that a cut at any moment harms its last line alone."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any

from .records import Event

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_strict = json.JSONEncoder(allow_nan=False, check_circular=False, default=str).encode


class RecordFile:
    """A block file. Each event is one line and one `write`, handed to the kernel before `write` returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        self._end_torn_line()

    def write(self, event: Event, **fields: Any) -> None:
        """Append one event."""
        record = {"event": event.value, **fields}
        try:
            line = _strict(record)
        except ValueError:
            line = json.dumps(_finite(record), default=str)
        data = line.encode("ascii") + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _end_torn_line(self) -> None:
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            os.write(self._descriptor, b"\n")


def clean(text: str, limit: int, *, keep_end: bool = False) -> str:
    """Strip terminal escapes and control characters, and cut to `limit` characters."""
    text = _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))
    if len(text) <= limit:
        return text
    return "[...]" + text[len(text) - limit :] if keep_end else text[:limit] + "[...]"


def _finite(value: Any) -> Any:
    """NaN and infinities become the texts "nan", "inf" and "-inf": JSON has no numbers for them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
