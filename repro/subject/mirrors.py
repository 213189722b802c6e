"""Bare copies of repositories elsewhere."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from repro.errors import NotReadyError
from repro.subject.git import GitError, git
from repro.subject.location import redacted
from repro.subject.repository import resolve_revision

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
DEFAULT_BRANCH = "refs/repro/default"
"""In a mirror, the branch that the repository elsewhere shows first."""


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
    folder = state / "mirrors" / _folder_name(url)
    if not (folder / "HEAD").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--bare")
    if not (rev and _COMMIT.fullmatch(rev) and _has(folder, rev)):
        _fetch(folder, url)
    return folder, resolve_revision(folder, rev or DEFAULT_BRANCH)


def _folder_name(url: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9_.-]", "_", url.rstrip("/").rsplit("/", 1)[-1].removesuffix(".git"))[:40]
    return f"{readable}-{hashlib.sha256(redacted(url).encode()).hexdigest()[:12]}"


def _has(repository: Path, commit: str) -> bool:
    try:
        git(repository, "cat-file", "-e", f"{commit}^{{commit}}")
    except GitError:
        return False
    return True


def _fetch(folder: Path, url: str) -> None:
    everything = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", f"+HEAD:{DEFAULT_BRANCH}")
    try:
        git(folder, "fetch", "--quiet", "--prune", "--no-write-fetch-head", "--", url, *everything)
    except GitError as error:
        raise NotReadyError(
            f"cannot fetch {redacted(url)}: {redacted(str(error))}",
            why="the address is wrong, the repository is private, or the network does not reach it",
            next_step=f"try `git ls-remote {redacted(url)}`",
        ) from None
