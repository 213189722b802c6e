"""Files that Git LFS holds beside git: what stands in a commit is a pointer to them."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from repro.errors import NotReadyError
from repro.subject import tree
from repro.subject.git import command, environment
from repro.subject.repository import contents
from repro.trial.plain import open_plain, plain_size

SPEC = b"version https://git-lfs.github.com/spec/"
"""What a pointer begins with."""

_POINTER = re.compile(re.escape(SPEC) + rb"v1\noid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n?")
LONGEST = 1024
"""Bytes of a pointer, below."""
_LARGEST = 2 * 2**30
"""Bytes of one file that is copied."""
_PIECE = 2**20


@dataclass(frozen=True, kw_only=True)
class Large:
    """A file that Git LFS holds.

    Args:
        path: in the copy.
        sha256: of its content.
        held: where its content lies.
    """

    path: str
    sha256: str
    held: Path


def large_files(
    repository: Path,
    entries: Sequence[tree.Entry],
    stores: Sequence[Path],
    *,
    alternates: Sequence[Path] = (),
) -> list[Large]:
    """The files of a commit whose contents are in a store of Git LFS, with the size that they say.

    Args:
        repository: folder or bare repository.
        entries: of the commit.
        stores: folders such as `.git/lfs/objects`.
        alternates: folders of further objects of git.
    """
    stores = [store for store in stores if store.is_dir()]
    if not stores:
        return []
    files = [entry for entry in entries if entry.mode != tree.LINK]
    sizes = _sizes(repository, {entry.blob for entry in files}, alternates)
    small = [entry for entry in files if len(SPEC) < sizes.get(entry.blob, 0) < LONGEST]
    found = []
    for entry, content in contents(repository, small, alternates=alternates):
        pointer = _POINTER.fullmatch(content)
        held = _held(stores, pointer[1].decode(), int(pointer[2])) if pointer else None
        if pointer is not None and held is not None:
            found.append(Large(path=entry.path, sha256=pointer[1].decode(), held=held))
    return found


def put_in_place(target: Path, files: Sequence[Large]) -> None:
    """Write the contents over the pointers of a copy.

    Raises:
        NotReadyError: the store holds other contents than it says.
    """
    for file in files:
        whole = hashlib.sha256()
        with open_plain(file.held) as source, (target / file.path).open("wb") as copy:
            while piece := source.read(_PIECE):
                whole.update(piece)
                copy.write(piece)
        if whole.hexdigest() != file.sha256:
            raise NotReadyError(
                f"what Git LFS holds of {file.path} is damaged",
                why="its content has another SHA-256 than its name says",
                next_step="`git lfs fsck` in the repository",
            )


def _held(stores: Sequence[Path], sha256: str, size: int) -> Path | None:
    for store in stores:
        path = store / sha256[:2] / sha256[2:4] / sha256
        if 0 < size <= _LARGEST and plain_size(path) == size:
            return path
    return None


def _sizes(repository: Path, blobs: set[str], alternates: Sequence[Path]) -> Mapping[str, int]:
    """Bytes of each blob that is there."""
    done = subprocess.run(
        command(repository, "cat-file", "--batch-check=%(objectname) %(objectsize)"),
        input="".join(f"{blob}\n" for blob in sorted(blobs)).encode(),
        capture_output=True,
        env=environment(alternates),
        check=False,
    )
    rows = (line.split() for line in done.stdout.decode(errors="replace").splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}
