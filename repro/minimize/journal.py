"""What a search for the smallest case has run already, so that it goes on where it was killed.

A step of the search follows from what the processes before it recorded. So their records are all that has to
be kept: the same search asks for the same processes again, and gets what is there instead of a new run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A process that came to its end.

    Args:
        folder: what it recorded.
        seconds: that it took.
    """

    folder: Path
    seconds: float


class Journal:
    """One file: a line for each process that ended, written after all that it recorded.

    Args:
        path: the file; the folders of the processes lie beside it. A line that was cut off is taken out.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, list[Ran]] = {}
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            path.write_bytes(whole)
        for line in whole.splitlines():
            self._read(line)

    @classmethod
    def open(cls, folder: Path, about: Mapping[str, object], *, fresh: bool = False) -> Journal:
        """The journal of a search, named after what it is about; `fresh` forgets what is in it."""
        name = identity(about)
        path = folder / f"{name}.jsonl"
        if fresh:
            path.unlink(missing_ok=True)
        return cls(path)

    def __len__(self) -> int:
        return sum(map(len, self._known.values()))

    def take(self, key: str) -> Ran | None:
        """What a process like this one recorded; each is given once."""
        ran = self._known.get(key)
        return ran.pop(0) if ran else None

    def add(self, key: str, ran: Ran) -> None:
        """Keep a process that came to its end."""
        line = json.dumps({"key": key, "folder": ran.folder.name, "seconds": ran.seconds})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _read(self, line: bytes) -> None:
        try:
            told: dict[str, Any] = json.loads(line)
            folder = self._path.parent / Path(str(told["folder"])).name
            ran, key = Ran(folder=folder, seconds=float(told["seconds"])), str(told["key"])
        except (ValueError, TypeError, KeyError):
            return
        if (folder / "records.jsonl").is_file():
            self._known.setdefault(key, []).append(ran)


def identity(about: Mapping[str, object]) -> str:
    """A short name, equal for equal values."""
    text = json.dumps(about, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
