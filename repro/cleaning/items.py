"""One thing that can be removed, and removing it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    """What a thing is, in the order in which things are removed."""

    CONTAINER = "container"
    IMAGE = "image"
    VOLUME = "volume"
    NETWORK = "network"
    LEFTOVER = "leftover"
    CACHE = "cache"
    RESULT = "result"


@dataclass(frozen=True, kw_only=True)
class Item:
    """A thing of the kit's.

    Args:
        kind: what it is.
        name: what it is called; for files, the place below the results folder.
        about: what it is good for.
        count: how many things of one sort it stands for.
        bytes: what it takes on disk; None where the engine does not say.
        remove: removes it; returns why it could not, or "".
    """

    kind: Kind
    name: str
    about: str
    count: int = 1
    bytes: int | None = None
    remove: Callable[[], str] = field(repr=False, compare=False)


def size(path: Path) -> int:
    """Bytes on disk of a file or a folder, links as themselves."""
    total = _blocks(path)
    if path.is_dir() and not path.is_symlink():
        for folder, folders, files in os.walk(path):
            total += sum(_blocks(Path(folder, name)) for name in (*folders, *files))
    return total


def _blocks(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0


def removed(path: Path) -> str:
    """Remove a file, a link (never what it points to), or a folder with read-only folders in it.

    Returns:
        Why something of it is still there, or "".
    """
    try:
        if path.is_dir() and not path.is_symlink():
            for folder, _, _ in os.walk(path):
                Path(folder).chmod(0o755)
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        return f"{error.filename or path.name}: {error.strerror}"
    return ""
