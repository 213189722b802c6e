"""The read-only copy of the code under test: made all at once or not at all, and named by what is in it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from repro.config import SubjectSpec
from repro.config.problems import listing, nearest
from repro.errors import NotReadyError, UsageError
from repro.subject import tree
from repro.subject.git import GitError, git
from repro.subject.location import address_of, folder_of
from repro.subject.repository import export, mirror, resolve_revision, tree_entries


@dataclass(frozen=True, kw_only=True)
class Copy:
    """Where the copy is, what it is called, and where it came from; `Subject` says what each field means."""

    root: Path
    revision: str
    origin: str
    commit: str | None


def copy_of(spec: SubjectSpec, state: Path) -> Copy:
    """Copy the code that `spec` names below `state`, unless that copy is there already.

    Raises:
        UsageError: when the folder, a part of it or the revision is not there, or a link leads outside.
        NotReadyError: when a repository cannot be reached, the disk is full, or there is no git.
    """
    folder = folder_of(spec)
    if folder is None:
        address, shown = address_of(spec)
        repository, commit = mirror(address, spec.rev, state)
        return _commit_copy(spec, state, repository, commit, "", shown)
    if not folder.is_dir():
        raise UsageError(
            f"there is no folder `{spec.path}`", next_step="correct subject.path in matrix.yaml, or --subject"
        )
    prefix = _prefix(folder)
    if spec.rev is not None:
        if prefix is None:
            raise UsageError(
                f"`{folder.name}` is no git repository, so it has no revision `{spec.rev}`",
                next_step="leave the revision out",
            )
        return _commit_copy(spec, state, folder, resolve_revision(folder, spec.rev), prefix, folder.name)
    return _folder_copy(spec, state, folder, prefix)


def _prefix(folder: Path) -> str | None:
    """The folder's place inside its git repository, "" for the top; None outside of any."""
    try:
        return git(folder, "rev-parse", "--show-prefix").rstrip("\n")
    except GitError as error:
        if "dubious ownership" in str(error) or "safe.directory" in str(error):
            raise UsageError(
                f"git refuses to read `{folder.name}`, which belongs to another user",
                next_step=f"git config --global --add safe.directory {folder}",
            ) from None
        return None


def _commit_copy(
    spec: SubjectSpec, state: Path, repository: Path, commit: str, prefix: str, origin: str
) -> Copy:
    entries = tree_entries(repository, commit, prefix=prefix)
    parts = set(_parts([entry.path for entry in entries], spec.files))
    entries = [entry for entry in entries if entry.path in parts]
    whole = not spec.files and not prefix
    revision = commit if whole else f"content-{tree.digest(entries)}"

    def fill(target: Path) -> str:
        export(repository, commit, target, prefix=prefix, files=spec.files)
        return revision

    root, revision = _place(state, revision, fill)
    return Copy(root=root, revision=revision, origin=origin, commit=commit)


def _folder_copy(spec: SubjectSpec, state: Path, folder: Path, prefix: str | None) -> Copy:
    commit = None if prefix is None else _head(folder)
    entries = tree.entries_of(folder, _parts(_names(folder, prefix, state), spec.files))
    whole = commit is not None and not spec.files and not prefix

    def revision_of(entries: list[tree.Entry]) -> str:
        if commit is not None and whole:
            committed = tree.digest(tree_entries(folder, commit))
            return commit if tree.digest(entries) == committed else f"{commit}+{tree.digest(entries)}"
        return f"content-{tree.digest(entries)}"

    def fill(target: Path) -> str:
        tree.copy(folder, [entry.path for entry in entries], target)
        return revision_of(tree.entries_of(target, [entry.path for entry in entries]))

    root, revision = _place(state, revision_of(entries), fill)
    return Copy(root=root, revision=revision, origin=folder.name, commit=commit)


def _head(folder: Path) -> str | None:
    try:
        return git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").strip()
    except GitError:
        return None


def _names(folder: Path, prefix: str | None, state: Path) -> list[str]:
    """Files that git tracks, or does not know yet and does not ignore; without git, all of them."""
    if prefix is None:
        return list(tree.walk(folder, without=state))
    tracked = git(folder, "ls-files", "-z", "--cached").split("\0")
    untracked = git(folder, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
    fresh = [name for name in untracked if not tree.is_junk(name) and not _below(folder / name, state)]
    return sorted({name for name in (*tracked, *fresh) if name})


def _below(path: Path, folder: Path) -> bool:
    return folder in path.parents


def _parts(names: list[str], parts: tuple[str, ...]) -> list[str]:
    """The files that belong to the named parts; every part must have one."""
    for part in parts:
        if not any(tree.within(name, [part]) for name in names):
            folders = {str(parent) for name in names for parent in Path(name).parents}
            near = nearest(part, folders | set(names))
            raise UsageError(
                f"the subject has no `{part}`",
                why=f"subject.files names it; the nearest are {listing(near)}"
                if near
                else "subject.files names it",
                next_step="correct subject.files in matrix.yaml",
            )
    return [name for name in names if tree.within(name, parts)]


def _place(state: Path, revision: str, fill: Callable[[Path], str]) -> tuple[Path, str]:
    """The copy named `revision`, made if need be.

    `fill` writes a copy and returns what it is, which differs from `revision` where files changed meanwhile.
    """
    subjects = state / "subjects"
    if (subjects / revision).is_dir():
        return subjects / revision, revision
    try:
        revision = _make(subjects, fill)
    except OSError as error:
        raise NotReadyError(
            f"the subject cannot be copied: {error.strerror or error}",
            why="a file changed or went away meanwhile, or the disk has no room",
            next_step="run this again; `repro doctor` shows the room on the disk",
        ) from None
    return subjects / revision, revision


def _make(subjects: Path, fill: Callable[[Path], str]) -> str:
    """All of a copy or nothing: what a killed process leaves behind has a name that nobody asks for."""
    subjects.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=subjects))
    try:
        revision = fill(draft)
        tree.freeze(draft)
        # Another process may have made the same copy in the meantime; theirs is as good.
        if not (subjects / revision).is_dir():
            draft.rename(subjects / revision)
    finally:
        _remove(draft)
    return revision


def _remove(folder: Path) -> None:
    if folder.is_dir():
        for path, _, _ in os.walk(folder):
            Path(path).chmod(0o755)
        shutil.rmtree(folder)
