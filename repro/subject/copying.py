"""The read-only copy of the code under test, named by what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from repro.config import SubjectSpec
from repro.config.problems import listing, nearest
from repro.errors import UsageError
from repro.subject import tree
from repro.subject.beside import beside
from repro.subject.git import GitError, git
from repro.subject.location import address_of, folder_of, is_folder
from repro.subject.mirrors import mirror
from repro.subject.notes import notes_of, submodules_of_folder
from repro.subject.placing import Filled, place
from repro.subject.repository import export_entries, prefix_of, resolve_revision, tree_entries
from repro.subject.tagged import version_from_tags
from repro.subject.targets import is_test_part


@dataclass(frozen=True, kw_only=True)
class Copy:
    """Where the copy is, what it is called, and where it came from; `Subject` says what each field means."""

    root: Path
    revision: str
    origin: str
    commit: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Picked:
    """The files of a commit that are copied.

    Args:
        repository: that holds the commit.
        commit: full id.
        prefix: folder of the repository that is the root of the copy, ending in `/`, or "".
        files: parts below the prefix; empty for all.
        test_file: relative to the prefix; what `tests_from` is about.
        tests_from: full id of the commit that the test's files are taken from instead, or None.
    """

    repository: Path
    commit: str
    prefix: str = ""
    files: tuple[str, ...] = ()
    test_file: str = ""
    tests_from: str | None = None

    @property
    def other(self) -> str | None:
        """The other commit that takes part, if any."""
        return None if self.tests_from == self.commit else self.tests_from


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
        return _named_commit_copy(
            Picked(repository=repository, commit=commit, files=spec.files), state, shown
        )
    if not is_folder(folder):
        raise UsageError(
            f"there is no folder `{spec.path}`", next_step="correct subject.path in matrix.yaml, or --subject"
        )
    prefix = prefix_of(folder)
    if spec.rev is not None:
        if prefix is None:
            raise UsageError(
                f"`{folder.name}` is no git repository, so it has no revision `{spec.rev}`",
                next_step="leave the revision out",
            )
        commit = resolve_revision(folder, spec.rev)
        picked = Picked(repository=folder, commit=commit, prefix=prefix, files=spec.files)
        return _named_commit_copy(picked, state, folder.name)
    return _folder_copy(spec, state, folder, prefix)


def _named_commit_copy(picked: Picked, state: Path, origin: str) -> Copy:
    if picked.files:
        everything = _entries(replace(picked, files=()), picked.commit)
        _check_parts([entry.path for entry in everything], picked.files)
    return commit_copy(picked, state, origin)


def commit_copy(picked: Picked, state: Path, origin: str) -> Copy:
    """Copy files of a commit below `state`, unless that copy is there already; parts may be missing.

    Raises:
        UsageError: when none of the parts is there, or a link leads outside.
        NotReadyError: when the disk is full, or the repository lacks an object.
    """
    own = _picked_entries(picked)
    more = beside(picked.repository, picked.commit, own, prefix=picked.prefix, files=picked.files)
    revision = _revision(picked) + more.mark

    def fill(target: Path) -> Filled:
        export_entries(picked.repository, own, target)
        more.write(picked.repository, target)
        tagged = version_from_tags(picked.repository, picked.commit)
        return Filled(revision=revision, notes=notes_of(target, more.notes), tagged=tagged)

    root, filled = place(state, revision, fill)
    return Copy(
        root=root, revision=filled.revision, origin=origin, commit=picked.commit, notes=tuple(filled.notes)
    )


@lru_cache(maxsize=65536)
def _revision(picked: Picked) -> str:
    if picked.files or picked.prefix:
        return f"content-{tree.digest(_picked_entries(picked))}"
    return picked.commit if picked.other is None else f"{picked.commit}+tests-{picked.other[:12]}"


def _picked_entries(picked: Picked) -> list[tree.Entry]:
    own = found = _entries(picked, picked.commit)
    if picked.other is not None:
        found = [entry for entry in own if not is_test_part(entry.path, picked.test_file)]
        tests = _entries(picked, picked.other)
        found += [entry for entry in tests if is_test_part(entry.path, picked.test_file)]
    if picked.files and not own:
        raise UsageError(
            f"commit {picked.commit[:12]} has none of {listing(picked.files)}",
            why="subject.files names the parts that are copied",
            next_step="correct subject.files in matrix.yaml",
        )
    return found


def _entries(picked: Picked, commit: str) -> list[tree.Entry]:
    try:
        return tree_entries(picked.repository, commit, prefix=picked.prefix, files=picked.files)
    except GitError as error:
        raise UsageError(
            f"commit {commit[:12]} has no folder `{picked.prefix.rstrip('/') or '.'}`",
            why=str(error),
            next_step="begin with a commit that has it",
        ) from None


def _folder_copy(spec: SubjectSpec, state: Path, folder: Path, prefix: str | None) -> Copy:
    commit = None if prefix is None else _head(folder)
    names = _names(folder, prefix, state)
    _check_parts(names, spec.files)
    entries = tree.entries_of(folder, [name for name in names if tree.within(name, spec.files)])
    whole = commit is not None and not spec.files and not prefix

    def revision_of(entries: list[tree.Entry]) -> str:
        if commit is not None and whole:
            committed = tree.digest(tree_entries(folder, commit))
            return commit if tree.digest(entries) == committed else f"{commit}+{tree.digest(entries)}"
        return f"content-{tree.digest(entries)}"

    def fill(target: Path) -> Filled:
        tree.copy(folder, [entry.path for entry in entries], target)
        revision = revision_of(tree.entries_of(target, [entry.path for entry in entries]))
        links = [] if prefix is None else submodules_of_folder(folder, spec.files)
        tagged = version_from_tags(folder, commit) if commit is not None else ""
        return Filled(revision=revision, notes=notes_of(target, links), tagged=tagged)

    root, filled = place(state, revision_of(entries), fill)
    return Copy(
        root=root, revision=filled.revision, origin=folder.name, commit=commit, notes=tuple(filled.notes)
    )


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
    fresh = [name for name in untracked if not tree.is_junk(name) and state not in (folder / name).parents]
    return sorted({name for name in (*tracked, *fresh) if name})


def _check_parts(names: Sequence[str], parts: Sequence[str]) -> None:
    """Refuse a part that has no file."""
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
