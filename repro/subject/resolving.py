"""From what matrix.yaml names to a read-only copy of it, with the test found."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from repro.config import Signature, SubjectSpec
from repro.config.problems import listing, nearest
from repro.errors import NotReadyError, UsageError
from repro.subject import tree
from repro.subject.git import GitError, git
from repro.subject.location import address_of, folder_of
from repro.subject.repository import export, mirror, resolve_revision, tree_entries
from repro.subject.targets import check_test, find_test_file


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Code under test, as every trial sees it.

    Args:
        root: read-only copy of the code.
        revision: commit id where the copy is a whole commit, `COMMIT+HASH` where files differ from the
            commit, `content-HASH` for parts of a repository and for folders without git. A test file
            from outside adds `+test-HASH`.
        origin: where it came from, fit to be shown to others.
        commit: the commit that it is, or is based on, or None without git.
        python_path: folders put on PYTHONPATH, relative to `root`.
        test_file: file that holds the test, relative to `root`; its bare name where it is from outside.
        own_test_file: read-only copy of a test file from outside the subject, or None.
        test: pytest's name of the target test inside the file.
        requirements: pip requirements beside torch, triton and pytest.
        signature: what the failure looked for is recognised by.
    """

    root: Path
    revision: str
    origin: str
    commit: str | None
    python_path: tuple[str, ...]
    test_file: str
    own_test_file: Path | None
    test: str
    requirements: tuple[str, ...]
    signature: Signature


@dataclass(frozen=True, kw_only=True)
class _Copy:
    root: Path
    revision: str
    origin: str
    commit: str | None


def resolve(spec: SubjectSpec, *, state: Path, test_file: str | None = None) -> Subject:
    """Copy the subject below `state` unless that copy is there already, and find its test.

    Args:
        spec: from matrix.yaml, with the command line laid over it.
        state: the kit's folder; copies go to `subjects/`, and are never changed.
        test_file: instead of `spec.test_file`: a file inside the subject, or a user's own outside it.

    Raises:
        UsageError: when the folder, revision, test file or test is not there; with the nearest names.
        NotReadyError: when a repository cannot be reached, or there is no git.
    """
    state = state.absolute()
    copied = _copy(spec, state)
    found = find_test_file(test_file or spec.test_file, copied.root, folder_of(spec), state)
    check_test(spec.test, found.host)
    return Subject(
        root=copied.root,
        revision=copied.revision + (f"+test-{found.digest}" if found.outside else ""),
        origin=copied.origin,
        commit=copied.commit,
        python_path=spec.python_path or _python_path(copied.root),
        test_file=found.name,
        own_test_file=found.host if found.outside else None,
        test=spec.test,
        requirements=spec.requirements,
        signature=spec.signature,
    )


def _copy(spec: SubjectSpec, state: Path) -> _Copy:
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
) -> _Copy:
    entries = tree_entries(repository, commit, prefix=prefix)
    parts = set(_parts([entry.path for entry in entries], spec.files))
    entries = [entry for entry in entries if entry.path in parts]
    whole = not spec.files and not prefix
    revision = commit if whole else f"content-{tree.digest(entries)}"

    def fill(target: Path) -> str:
        export(repository, commit, target, prefix=prefix, files=spec.files)
        return revision

    root, revision = _place(state, revision, fill)
    return _Copy(root=root, revision=revision, origin=origin, commit=commit)


def _folder_copy(spec: SubjectSpec, state: Path, folder: Path, prefix: str | None) -> _Copy:
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
    return _Copy(root=root, revision=revision, origin=folder.name, commit=commit)


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


def _python_path(root: Path) -> tuple[str, ...]:
    source = root / "src"
    has_code = (source.is_dir() and any(source.glob("*.py"))) or any(source.glob("*/__init__.py"))
    return ("src",) if has_code else (".",)
