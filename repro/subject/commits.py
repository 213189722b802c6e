"""A repository whose history is searched, and one commit of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from repro.config import SubjectSpec
from repro.errors import UsageError
from repro.subject.git import GitError, git
from repro.subject.location import address_of, folder_of, is_folder
from repro.subject.mirrors import DEFAULT_BRANCH, mirror
from repro.subject.repository import prefix_of

_WEB = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^/@]*@)?|(?:[^/@:]*@))"
    r"(?P<host>(?:www\.)?github\.com|gitlab\.com|codeberg\.org|git(?:hub|lab)\.[\w.-]+)(?::\d+(?=/))?[:/]+"
    r"(?P<path>[\w.~/-]+?)(?:\.git)?/?"
)


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One commit. Who wrote it is not kept: that is nobody's business in a report.

    Args:
        id: full id.
        parents: full ids, the first parent first; none for a root commit.
        date: when it was committed, as an ISO day.
        subject: first line of its message, without control characters.
    """

    id: str
    parents: tuple[str, ...]
    date: str
    subject: str

    @property
    def short(self) -> str:
        """The id's first 12 digits."""
        return self.id[:12]

    @property
    def is_merge(self) -> bool:
        """Whether it has more than one parent."""
        return len(self.parents) > 1


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A local folder inside a git repository, or the mirror of a repository elsewhere.

    Args:
        path: where git runs.
        origin: the folder's name or the URL, fit to be shown to others.
        prefix: the subject's folder inside the repository, ending in `/`, or "" for the whole of it.
        url: address of its web page, for links to commits, or None where none is known.
        rev: what a history ends with unless it is told otherwise.
    """

    path: Path
    origin: str
    prefix: str = ""
    url: str | None = None
    rev: str = "HEAD"


def open_repository(spec: SubjectSpec, state: Path) -> Repository:
    """Open the repository that holds the subject; one elsewhere is mirrored below `state`, and fetched once.

    Args:
        spec: its `path` may be any folder inside a repository.
        state: the kit's folder.

    Raises:
        UsageError: when the folder is not there, or is no part of a git repository.
        NotReadyError: when a repository cannot be reached, or there is no git.
    """
    folder = folder_of(spec)
    if folder is None:
        address, shown = address_of(spec)
        path, _ = mirror(address, spec.rev, state.absolute())
        return Repository(path=path, origin=shown, url=web_address(address), rev=spec.rev or DEFAULT_BRANCH)
    if not is_folder(folder):
        raise UsageError(
            f"there is no folder `{spec.path}`",
            next_step="correct --repo, or subject.path in matrix.yaml",
        )
    prefix = prefix_of(folder)
    if prefix is None:
        raise UsageError(
            f"`{folder.name}` is no git repository, so it has no commits",
            why="commits are searched in a folder under git, or in a repository elsewhere",
            next_step="give another one: --repo PATH_OR_URL",
        )
    url = web_address(_remote(folder))
    return Repository(path=folder, origin=folder.name, prefix=prefix, url=url, rev=spec.rev or "HEAD")


def web_address(remote: str) -> str | None:
    """The web page of a repository at a known kind of host, without credentials; else None."""
    found = _WEB.fullmatch(remote)
    if not found or "/" not in found["path"]:
        return None
    return f"https://{found['host'].removeprefix('www.')}/{found['path']}"


def _remote(folder: Path) -> str:
    try:
        return git(folder, "config", "--get", "remote.origin.url").strip()
    except GitError:
        return ""
