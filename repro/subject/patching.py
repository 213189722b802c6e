"""A subject with a patch applied: to a further copy of it, never to anybody's files."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from repro.config.problems import listing
from repro.errors import NotReadyError, UsageError
from repro.subject import tree
from repro.subject.git import command, environment, no_git
from repro.subject.layout import find_python_path
from repro.subject.metadata import FOLDER, furnished_version, with_metadata
from repro.subject.placing import Filled, place
from repro.subject.resolving import Subject
from repro.subject.targets import check_test, is_test_part

STRIPS = (1, 0, 2, 3, 4)
"""Leading folders that are taken off the names in a patch, in the order in which they are tried."""

_CODE = frozenset(
    {".py", ".pyx", ".pyi", ".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp", ".inl", ".ptx", ".so"}
)


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Files in which two copies of a subject differ, by name.

    Args:
        test: the test file, what lies in its folder of tests, and every conftest.py.
        code: other sources.
        rest: documentation, metadata, data.
    """

    test: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether they differ at all."""
        return bool(self.test or self.code or self.rest)


@dataclass(frozen=True, kw_only=True)
class _Way:
    """How a patch fits: folders taken off its names, and files of it that are no part of the subject."""

    strip: int
    outside: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        """Of `git apply`."""
        return [f"-p{self.strip}", *(f"--exclude={name}" for name in self.outside)]


def patched(subject: Subject, patch: Path, *, state: Path, files: Sequence[str] = ()) -> Subject:
    """The subject with a unified diff applied, as a read-only copy of its own below `state`.

    Its revision is the one that the folder would have if the patch were applied there. What the patch does
    to files outside of `files` is left out, and said in the notes.

    Args:
        subject: stays as it is.
        patch: what `git diff` or `diff -u` printed.
        state: the kit's folder.
        files: parts of the folder that are the subject, as in matrix.yaml; empty for all of it.

    Raises:
        UsageError: the patch cannot be read, does not apply, changes nothing, or takes the test away.
        NotReadyError: there is no git, or the copy cannot be written.
    """
    content, way = _read(patch), _fitting(patch, subject.root, files)
    names = _names(subject.root)

    def fill(target: Path) -> Filled:
        tree.copy(subject.root, names, target)
        _apply(target, way.options, patch)
        return Filled(revision=_revision(subject, target), tagged=furnished_version(subject.root))

    draft = f"patch-{hashlib.sha256(content).hexdigest()[:12]}"  # no copy is ever called so
    root, filled = place(state.absolute(), draft, fill)
    if not changes(subject, root).any:
        raise _nothing(patch, "its files are as the patch would leave them")
    if subject.own_test_file is None:
        _check_test(subject, root, patch)
    return _with(subject, root, filled.revision, way.outside)


def changes(subject: Subject, root: Path) -> Changes:
    """Where another copy differs from the subject's own."""
    before, after = ({entry.path: entry for entry in _entries(folder)} for folder in (subject.root, root))
    groups: dict[str, list[str]] = {"test": [], "code": [], "rest": []}
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            groups[_group(name, subject)].append(name)
    return Changes(**{group: tuple(names) for group, names in groups.items()})


def _group(name: str, subject: Subject) -> str:
    path = PurePosixPath(name)
    own = subject.own_test_file is not None  # a file of that name in the subject is another one
    if path.name == "conftest.py" or (not own and is_test_part(name, subject.test_file)):
        return "test"
    return "code" if path.suffix in _CODE else "rest"


def _names(root: Path) -> list[str]:
    """Files of a copy, less what the kit added as metadata."""
    found = (path for path in root.rglob("*") if path.is_symlink() or path.is_file())
    names = (path.relative_to(root).as_posix() for path in found)
    return sorted(name for name in names if not tree.within(name, [FOLDER]))


def _entries(root: Path) -> list[tree.Entry]:
    return tree.entries_of(root, _names(root))


def _revision(subject: Subject, root: Path) -> str:
    """As a folder's copy is called: after its commit, and after its files."""
    digest = tree.digest(_entries(root))
    whole = subject.commit is not None and subject.revision.startswith(subject.commit)
    return f"{subject.commit}+{digest}" if whole else f"content-{digest}"


def _with(subject: Subject, root: Path, revision: str, outside: Sequence[str]) -> Subject:
    own = subject.revision.partition("+test-")[2]
    given = tuple(part for part in subject.python_path if part != FOLDER)
    folders = find_python_path(root) if given == find_python_path(subject.root) else given
    notes = [f"left out of the patch, as it is no part of the subject: {listing(outside)}"] if outside else []
    return replace(
        subject,
        root=root,
        revision=revision + (f"+test-{own}" if own else ""),
        python_path=with_metadata(root, folders),
        notes=(*subject.notes, *notes),
    )


def _check_test(subject: Subject, root: Path, patch: Path) -> None:
    if not (root / subject.test_file).is_file():
        raise UsageError(
            f"{patch.name} takes {subject.test_file} away",
            why="a fix is shown by the test that failed",
            next_step="leave that file out of the patch",
        )
    check_test(subject.test, root / subject.test_file)


# git apply -------------------------------------------------------------------------------------------------


def _read(patch: Path) -> bytes:
    try:
        return patch.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{patch.name} cannot be read: {error.strerror}", next_step="git diff > fix.patch, and name that"
        ) from None


def _fitting(patch: Path, root: Path, files: Sequence[str]) -> _Way:
    """The first way in which the patch applies and changes a file of the subject.

    Raises:
        UsageError: there is none; with what git said about the usual way.
    """
    said, outside = "", ""
    for strip in STRIPS:
        listed = _git_apply(root, ["--numstat", "-z", f"-p{strip}"], patch)
        if listed.returncode:
            said = said or (_reason(listed) if strip == STRIPS[0] else "")
            continue
        names = list(_listed(listed.stdout.decode("utf-8", "surrogateescape")))
        way = _Way(strip=strip, outside=tuple(name for name in names if not tree.within(name, files)))
        if len(way.outside) == len(names):
            outside = outside or listing(names)
            continue
        checked = _git_apply(root, ["--check", *way.options], patch)
        if not checked.returncode:
            return way
        said = said or _reason(checked)
        if "invalid path" in said:
            break
    if not said and outside:
        raise _nothing(patch, f"it changes {outside}, and subject.files names {listing(files)}")
    if "No valid patches" in said or "unrecognized input" in said:
        raise _nothing(patch, "git finds no change in it")
    raise UsageError(
        f"{patch.name} does not apply: {said}",
        why="it was made against other files than those of the subject",
        next_step="make it anew with `git diff` in the subject's folder, or name a revision: --ref REV",
    )


def _nothing(patch: Path, why: str) -> UsageError:
    return UsageError(
        f"{patch.name} changes no file of the subject",
        why=why,
        next_step="git diff > fix.patch, with the fix in the subject's folder",
    )


def _listed(table: str) -> Iterator[str]:
    for row in filter(None, table.split("\0")):
        yield row.split("\t", 2)[2]


def _apply(folder: Path, options: Sequence[str], patch: Path) -> None:
    done = _git_apply(folder, options, patch)
    if done.returncode:
        raise NotReadyError(
            f"{patch.name} could not be written: {_reason(done)}",
            why="the disk has no room",
            next_step="df -h",
        )


def _git_apply(folder: Path, options: Sequence[str], patch: Path) -> subprocess.CompletedProcess[bytes]:
    """Run `git apply` in a folder as if it were in no repository: else names start from that one's top."""
    folder = folder.resolve()
    try:
        return subprocess.run(
            [*command(folder, "apply", "--whitespace=nowarn"), *options, str(patch.resolve())],
            capture_output=True,
            env={**environment(), "GIT_CEILING_DIRECTORIES": str(folder.parent)},
            check=False,
        )
    except FileNotFoundError:
        raise no_git() from None


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or lines or ["git apply failed"])[0]
