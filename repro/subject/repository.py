"""Commits of a git repository, and their files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from repro.config.problems import listing, nearest
from repro.errors import NotReadyError, UsageError
from repro.subject import tree
from repro.subject.git import GitError, command, environment, git, no_git
from repro.ui import one_line

LONGEST = 1000
"""Characters of a revision's name."""


def resolve_revision(repository: Path, rev: str) -> str:
    """Full id of the commit that a branch, tag or abbreviated id names.

    Raises:
        UsageError: when there is none; with the nearest branches and tags.
    """
    if not rev or rev.startswith(("-", "^")) or not rev.isprintable() or len(rev) > LONGEST:
        raise UsageError(
            f"`{one_line(rev)}` is no revision",
            why="a revision is a branch, a tag or a commit id, and begins with no `-` or `^`",
        )
    try:
        return git(repository, "rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}").strip()
    except GitError:
        raise _no_revision(repository, rev) from None


def _no_revision(repository: Path, rev: str) -> UsageError:
    names = git(
        repository, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes"
    )
    near = nearest(rev, names.split())
    return UsageError(
        f"there is no revision `{rev}`",
        why=f"the nearest branches and tags are {listing(near)}"
        if near
        else "no branch or tag looks like it",
        next_step="`git fetch` in a local folder, or give the URL; `git log` lists commits",
    )


def prefix_of(folder: Path) -> str | None:
    """The folder's place inside its git repository, ending in `/`, "" for the top; None outside of any.

    Raises:
        UsageError: when git distrusts the folder's owner.
    """
    try:
        return git(folder, "rev-parse", "--show-prefix").rstrip("\n")
    except GitError as error:
        if "dubious ownership" in str(error) or "safe.directory" in str(error):
            raise UsageError(
                f"git refuses to read `{folder.name}`, which belongs to another user",
                next_step=f"git config --global --add safe.directory {folder}",
            ) from None
        return None


def tree_entries(
    repository: Path,
    commit: str,
    *,
    prefix: str = "",
    files: Sequence[str] = (),
    alternates: Sequence[Path] = (),
) -> list[tree.Entry]:
    """The files of a commit; what submodules hold is not among them.

    Args:
        repository: folder or bare repository.
        commit: full id.
        prefix: folder of the repository to take as the root, ending in `/`, or "".
        files: parts below the prefix; empty for all.
        alternates: folders of further objects.
    """
    asked = ("ls-tree", "-r", "-z", "--full-tree", f"{commit}:{prefix}")
    entries = []
    for row in filter(None, git(repository, *asked, alternates=alternates).split("\0")):
        facts, _, path = row.partition("\t")
        mode, kind, blob = facts.split()
        if kind == "blob" and tree.within(path, files):
            entries.append(tree.Entry(path=path, mode=_mode(mode), blob=blob))
    return entries


def _mode(mode: str) -> str:
    return mode if mode in (tree.EXECUTABLE, tree.LINK) else tree.FILE


def export(
    repository: Path, commit: str, target: Path, *, prefix: str = "", files: Sequence[str] = ()
) -> list[tree.Entry]:
    """Write the files of a commit into a new or empty folder, exactly as they were committed.

    `git archive` is not used: it leaves out what a repository marks as no part of a release, such as tests.

    Args:
        repository: folder or bare repository.
        commit: full id.
        target: folder to write into.
        prefix: folder of the repository to take as the root, ending in `/`, or "".
        files: parts below the prefix; empty for all.

    Raises:
        UsageError: when a link or a name leads outside the folder.
    """
    entries = tree_entries(repository, commit, prefix=prefix, files=files)
    export_entries(repository, entries, target)
    return entries


def export_entries(
    repository: Path, entries: Sequence[tree.Entry], target: Path, *, alternates: Sequence[Path] = ()
) -> None:
    """Write files that a repository holds, of one commit or of several, into a folder without them."""
    target.mkdir(parents=True, exist_ok=True)
    for entry, content in contents(repository, entries, alternates=alternates):
        tree.write(target, entry.path, entry.mode, content)


def contents(
    repository: Path, entries: Sequence[tree.Entry], *, alternates: Sequence[Path] = ()
) -> Iterator[tuple[tree.Entry, bytes]]:
    """Ask one git process for every file in turn, so that no more than one is in memory."""
    try:
        process = subprocess.Popen(
            command(repository, "cat-file", "--batch"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(alternates),
        )
    except FileNotFoundError:
        raise no_git() from None
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for entry in entries:
            process.stdin.write(entry.blob.encode() + b"\n")
            process.stdin.flush()
            yield entry, _content(process.stdout)


def _content(stream: IO[bytes]) -> bytes:
    header = stream.readline().split()
    if len(header) != 3:
        raise NotReadyError(
            f"the repository lacks an object: {b' '.join(header).decode(errors='replace')}",
            why="a shallow or partial clone has not all of its files",
            next_step="`git fetch --unshallow` there, or give the URL",
        )
    content = stream.read(int(header[2]))
    stream.read(1)
    return content
