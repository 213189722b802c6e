"""Copies appear all at once or not at all, and are never changed afterwards."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from repro.errors import NotReadyError
from repro.subject import tree
from repro.subject.metadata import furnish

LAYOUT = "3"
"""What a copy holds beside the subject's files: goes up when that changes, so that old copies are left alone.

1: nothing. 2: package metadata and the version files of build backends. 3: versions out of git's tags, the
contents of submodules and of Git LFS.
"""


@dataclass(frozen=True, kw_only=True)
class Filled:
    """What was written into a new copy.

    Args:
        revision: what it is.
        notes: sentences about what it lacks.
        tagged: the version that git's tags say, or "".
    """

    revision: str
    notes: Sequence[str] = ()
    tagged: str = ""


def place(state: Path, revision: str, fill: Callable[[Path], Filled]) -> tuple[Path, Filled]:
    """The copy named `revision`, made if need be; safe in several threads and processes at once.

    Args:
        state: the kit's folder; copies go to `subjects/`.
        revision: what the copy is called.
        fill: writes a copy and returns what it is, which differs from `revision` where files changed
            meanwhile.

    Raises:
        NotReadyError: when it cannot be written.
    """
    subjects = state / "subjects" / LAYOUT
    if (subjects / revision).is_dir():
        return subjects / revision, Filled(revision=revision, notes=_read_notes(subjects, revision))
    try:
        filled = _make(subjects, fill)
    except OSError as error:
        raise NotReadyError(
            f"the subject cannot be copied: {error.strerror or error}",
            why="a file changed or went away meanwhile, or the disk has no room",
            next_step="run this again; `repro doctor` shows the room on the disk",
        ) from None
    return subjects / filled.revision, filled


def _make(subjects: Path, fill: Callable[[Path], Filled]) -> Filled:
    """All of a copy or nothing: what a killed process leaves behind has a name that nobody asks for."""
    subjects.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=subjects))
    try:
        filled = fill(draft)
        furnish(draft, filled.tagged)
        tree.freeze(draft)
        _write_notes(subjects, filled)
        _rename(draft, subjects / filled.revision)
    finally:
        _remove(draft)
    return filled


def _rename(draft: Path, target: Path) -> None:
    """Another process may have made the same copy in the meantime; theirs is as good."""
    try:
        draft.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def _remove(folder: Path) -> None:
    if folder.is_dir():
        for path, _, _ in os.walk(folder):
            Path(path).chmod(0o755)
        shutil.rmtree(folder)


def _notes_file(subjects: Path, revision: str) -> Path:
    return subjects.parent / f"notes-{LAYOUT}" / f"{revision}.json"


def _write_notes(subjects: Path, filled: Filled) -> None:
    """Before the copy appears, so that whoever finds it finds them."""
    if not filled.notes:
        return
    path = _notes_file(subjects, filled.revision)
    path.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as draft:
        json.dump(list(filled.notes), draft)
    Path(draft.name).rename(path)


def _read_notes(subjects: Path, revision: str) -> tuple[str, ...]:
    try:
        return tuple(json.loads(_notes_file(subjects, revision).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return ()
