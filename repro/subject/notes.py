"""What a copy lacks, and why: contents of submodules, and of files that git holds elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from repro.subject import tree
from repro.subject.git import git

_POINTER = b"version https://git-lfs.github.com/spec/"
_LONGEST = 1024
_SHOWN = 3


def submodules_of_commit(repository: Path, commit: str, prefix: str, files: Sequence[str]) -> list[str]:
    """Paths of the submodules of a commit, relative to `prefix`; what they hold is in other repositories."""
    rows = git(repository, "ls-tree", "-r", "-z", "--full-tree", f"{commit}:{prefix}").split("\0")
    return _links(rows, files)


def submodules_of_folder(folder: Path, files: Sequence[str]) -> list[str]:
    """Paths of the submodules of a folder inside a git repository."""
    return _links(git(folder, "ls-files", "-z", "--stage").split("\0"), files)


def _links(rows: Sequence[str], files: Sequence[str]) -> list[str]:
    paths = [row.partition("\t")[2] for row in rows if row.startswith("160000 ")]
    return [path for path in paths if tree.within(path, files)]


def notes_of(root: Path, submodules: Sequence[str]) -> list[str]:
    """Sentences about what the copy `root` lacks."""
    notes = [f"submodule {path} is not copied" for path in submodules]
    pointers = sorted(_pointers(root))
    notes += [f"{name} is a pointer of Git LFS, its content is not copied" for name in pointers[:_SHOWN]]
    if len(pointers) > _SHOWN:
        notes.append(f"so are {len(pointers) - _SHOWN} more files of Git LFS")
    return notes


def _pointers(root: Path) -> Iterator[str]:
    for path in root.rglob("*"):
        if not path.is_symlink() and path.is_file() and len(_POINTER) < path.stat().st_size < _LONGEST:
            with path.open("rb") as stream:
                if stream.read(len(_POINTER)) == _POINTER:
                    yield path.relative_to(root).as_posix()
