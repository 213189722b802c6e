"""Files in folders that the code under test can write to: a link or a pipe there is no file.

A container sees one folder of the host that it may fill. A link that it leaves there leads nowhere inside,
but on the host it would lead to any file of whoever runs the kit; a pipe would keep its reader waiting.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_plain(path: Path, *, append: bool = False) -> BinaryIO:
    """Open a regular file to read, or to append to it, unbuffered; it is made if need be.

    Raises:
        OSError: it cannot be opened, or is a link, a pipe, a device or a folder.
    """
    more = os.O_WRONLY | os.O_APPEND | os.O_CREAT if append else os.O_RDONLY
    descriptor = os.open(str(path), more | _FLAGS, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(descriptor, "ab" if append else "rb", buffering=0 if append else -1)


MOST = 2**30
"""Bytes that are read of a file: one that seems larger may be nothing but a hole."""


def read_plain(path: Path) -> bytes:
    """All of a regular file up to `MOST` bytes, or nothing where there is none."""
    try:
        with open_plain(path) as file:
            return file.read(MOST)
    except OSError:
        return b""


def plain_size(path: Path) -> int:
    """Bytes of a regular file; 0 where there is none."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def put_aside(path: Path) -> None:
    """Rename what is no regular file, so that one can be made in its place; it is kept to be looked at."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        path.rename(path.with_name(path.name + ".no-file"))
