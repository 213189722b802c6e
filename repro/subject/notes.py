"""What a copy lacks, and why: contents of submodules, and of files that git holds elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from repro.subject import tree
from repro.subject.git import git
from repro.subject.largefiles import LONGEST, SPEC

_SHOWN = 3


def submodules_of_folder(folder: Path, files: Sequence[str]) -> list[str]:
    """Sentences about the submodules of a folder inside a git repository."""
    rows = git(folder, "ls-files", "-z", "--stage").split("\0")
    paths = [row.partition("\t")[2] for row in rows if row.startswith("160000 ")]
    return [f"submodule {path} is not copied" for path in paths if tree.within(path, files)]


def notes_of(root: Path, submodules: Sequence[str]) -> list[str]:
    """Sentences about what the copy `root` lacks: those about submodules, and further ones."""
    notes = list(submodules)
    pointers = sorted(_pointers(root))
    notes += [f"{name} is a pointer of Git LFS, its content is not copied" for name in pointers[:_SHOWN]]
    if len(pointers) > _SHOWN:
        notes.append(f"so are {len(pointers) - _SHOWN} more files of Git LFS")
    return notes


def _pointers(root: Path) -> Iterator[str]:
    for path in root.rglob("*"):
        if not path.is_symlink() and path.is_file() and len(SPEC) < path.stat().st_size < LONGEST:
            with path.open("rb") as stream:
                if stream.read(len(SPEC)) == SPEC:
                    yield path.relative_to(root).as_posix()
