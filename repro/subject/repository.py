"""Commits of a git repository, and mirrors of repositories elsewhere."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from repro.config.problems import listing, nearest
from repro.errors import NotReadyError, UsageError
from repro.subject import tree
from repro.subject.git import GitError, command, environment, git, no_git
from repro.subject.location import redacted

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_DEFAULT_BRANCH = "refs/repro/default"


def resolve_revision(repository: Path, rev: str) -> str:
    """Full id of the commit that a branch, tag or abbreviated id names.

    Raises:
        UsageError: when there is none; with the nearest branches and tags.
    """
    if not rev or rev.startswith("-") or not rev.isprintable():
        raise UsageError(
            f"`{rev}` is no revision",
            why="a revision is a branch, a tag or a commit id, and begins with no `-`",
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


def tree_entries(
    repository: Path, commit: str, *, prefix: str = "", files: Sequence[str] = ()
) -> list[tree.Entry]:
    """The files of a commit; what submodules hold is not among them.

    Args:
        repository: folder or bare repository.
        commit: full id.
        prefix: folder of the repository to take as the root, ending in `/`, or "".
        files: parts below the prefix; empty for all.
    """
    rows = git(repository, "ls-tree", "-r", "-z", "--full-tree", f"{commit}:{prefix}").split("\0")
    entries = []
    for row in filter(None, rows):
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
    target.mkdir(parents=True, exist_ok=True)
    for entry, content in _contents(repository, entries):
        tree.write(target, entry.path, entry.mode, content)
    return entries


def _contents(repository: Path, entries: Sequence[tree.Entry]) -> Iterator[tuple[tree.Entry, bytes]]:
    """Ask one git process for every file in turn, so that no more than one is in memory."""
    try:
        process = subprocess.Popen(
            command(repository, "cat-file", "--batch"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
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


def mirror(url: str, rev: str | None, state: Path) -> tuple[Path, str]:
    """A bare copy of a repository elsewhere, fetched unless it has the commit already.

    Args:
        url: of the repository.
        rev: branch, tag or commit; None for the default branch.
        state: the kit's folder; the copy is below `mirrors/`.

    Returns:
        the copy's folder and the full id of the commit.

    Raises:
        NotReadyError: when the repository cannot be reached.
        UsageError: when it has no such revision.
    """
    folder = state / "mirrors" / _mirror_name(url)
    if not (folder / "HEAD").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--bare")
    if not (rev and _COMMIT.fullmatch(rev) and _has(folder, rev)):
        _fetch(folder, url)
    return folder, resolve_revision(folder, rev or _DEFAULT_BRANCH)


def _mirror_name(url: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9_.-]", "_", url.rstrip("/").rsplit("/", 1)[-1].removesuffix(".git"))[:40]
    return f"{readable}-{hashlib.sha256(redacted(url).encode()).hexdigest()[:12]}"


def _has(repository: Path, commit: str) -> bool:
    try:
        git(repository, "cat-file", "-e", f"{commit}^{{commit}}")
    except GitError:
        return False
    return True


def _fetch(folder: Path, url: str) -> None:
    everything = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", f"+HEAD:{_DEFAULT_BRANCH}")
    try:
        git(folder, "fetch", "--quiet", "--prune", "--no-write-fetch-head", "--", url, *everything)
    except GitError as error:
        raise NotReadyError(
            f"cannot fetch {redacted(url)}: {redacted(str(error))}",
            why="the address is wrong, the repository is private, or the network does not reach it",
            next_step=f"try `git ls-remote {redacted(url)}`",
        ) from None
