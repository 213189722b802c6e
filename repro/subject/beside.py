"""What a commit needs beside its own files: the contents of submodules, and of files that Git LFS holds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from repro.subject import tree
from repro.subject.largefiles import Large, large_files, put_in_place
from repro.subject.repository import export_entries
from repro.subject.submodules import Held, git_folders, submodules_of

_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What the repository has of these.

    Args:
        submodules: their files, and which are missing.
        large: files whose contents take the place of pointers.
    """

    submodules: Held = field(default_factory=Held)
    large: Sequence[Large] = ()

    @property
    def mark(self) -> str:
        """Tells copies with such contents from those without, and from each other; "" for none."""
        if not self.submodules.entries and not self.large:
            return ""
        whole = hashlib.sha256(tree.digest(self.submodules.entries).encode())
        for file in self.large:
            whole.update(f"{file.sha256} {file.path}\0".encode("utf-8", "surrogateescape"))
        return f"+with-{whole.hexdigest()[:12]}"

    @property
    def notes(self) -> list[str]:
        """Sentences about what is missing."""
        missing = self.submodules.missing
        told = [f"submodule {path} is not copied: {why}" for path, why in missing[:_SHOWN]]
        return told + ([f"nor are {len(missing) - _SHOWN} more submodules"] if len(missing) > _SHOWN else [])

    def write(self, repository: Path, target: Path) -> None:
        """Add all of it to a copy of the commit's own files.

        Raises:
            UsageError: a link or a name leads outside the copy.
            NotReadyError: an object is missing or damaged.
        """
        if self.submodules.entries:
            objects = self.submodules.objects
            export_entries(repository, self.submodules.entries, target, alternates=objects)
        put_in_place(target, self.large)


def beside(
    repository: Path, commit: str, own: Sequence[tree.Entry], *, prefix: str = "", files: Sequence[str] = ()
) -> Beside:
    """What the repository has beside a commit's own files; nothing is fetched.

    Args:
        repository: folder or bare repository.
        commit: full id.
        own: the files of the commit that are copied.
        prefix: folder of the repository that is the root of the copy, ending in `/`, or "".
        files: parts below the prefix; empty for all.
    """
    held = submodules_of(repository, commit, prefix, files)
    stores = [folder / "lfs" / "objects" for folder in (*git_folders(repository), *held.homes)]
    large = large_files(repository, [*own, *held.entries], stores, alternates=held.objects)
    return Beside(submodules=held, large=large)
