"""The commits between two revisions, as lines to search: the first parents, and what a merge brought in."""

from __future__ import annotations

from repro.errors import UsageError
from repro.subject.commits import Commit, Repository, open_repository, web_address
from repro.subject.git import GitError, git
from repro.subject.repository import resolve_revision
from repro.subject.sources import TestSource, test_names
from repro.subject.touching import Touched, touched

__all__ = [
    "Commit",
    "Repository",
    "TestSource",
    "Touched",
    "commits_between",
    "merged_commits",
    "open_repository",
    "test_names",
    "touched",
    "web_address",
]

_LOG = (
    "log",
    "-z",
    "--format=tformat:%H%x00%P%x00%cs%x00%s",
    "--encoding=UTF-8",
    "--no-color",
    "--no-show-signature",
    "--no-patch",
)
_FIELDS = 4


def commits_between(repository: Repository, old: str | None, new: str | None) -> list[Commit]:
    """The line of first parents from `old` to `new`, oldest first, both included.

    Where `old` was merged into that line, the line's commits that came after it follow it directly.

    Args:
        repository: whose history.
        old: revision; None for the first commit of the line.
        new: revision; None for the one that the repository was opened with.

    Raises:
        UsageError: when a revision is not there, or `old` is no ancestor of `new`.
    """
    end = resolve_revision(repository.path, repository.rev if new is None else new)
    if old is None:
        return _line(repository, end)
    start = resolve_revision(repository.path, old)
    line = _line(repository, end, without=[start])
    if start != end and not (line and start in line[0].parents):
        _check_ancestor(repository, (old, start), (repository.rev if new is None else new, end))
    return [_one(repository, start), *line]


def merged_commits(repository: Repository, merge: Commit, old: str) -> list[list[Commit]]:
    """What a merge brought in: for each parent but the first, the line of first parents that leads to it.

    A line begins with the commit that it forked from, which the merge's first parent holds too, or with its
    root where it has a history of its own. Oldest first; parents that brought nothing new have no line.

    Args:
        repository: whose history.
        merge: a commit with several parents.
        old: revision; what it holds is left out as well.
    """
    known, lines = [resolve_revision(repository.path, old), merge.parents[0]], []
    for parent in merge.parents[1:]:
        line = _line(repository, parent, without=known)
        if line:
            fork = [_one(repository, line[0].parents[0])] if line[0].parents else []
            lines.append([*fork, *line])
        known.append(parent)
    return lines


def _line(repository: Repository, end: str, *, without: list[str] | None = None) -> list[Commit]:
    left_out = [f"^{commit}" for commit in without or ()]
    return _commits(git(repository.path, *_LOG, "--first-parent", end, *left_out, "--"))[::-1]


def _one(repository: Repository, commit: str) -> Commit:
    return _commits(git(repository.path, *_LOG, "--max-count=1", commit, "--"))[0]


def _commits(printed: str) -> list[Commit]:
    fields = printed.split("\0")[:-1]
    rows = zip(*(fields[start::_FIELDS] for start in range(_FIELDS)), strict=True)
    return [
        Commit(id=commit, parents=tuple(parents.split()), date=day, subject=_shown(subject))
        for commit, parents, day, subject in rows
    ]


def _shown(text: str) -> str:
    """A stranger's text, fit for a terminal: every kind of space as a blank, and nothing invisible."""
    blanks = (" " if character.isspace() else character for character in text)
    return " ".join("".join(character for character in blanks if character.isprintable()).split())


def _check_ancestor(repository: Repository, old: tuple[str, str], new: tuple[str, str]) -> None:
    """Refuse two revisions that no line joins; each is given as it was named, and as a full id."""
    if _is_ancestor(repository, old[1], new[1]):
        return
    if _is_ancestor(repository, new[1], old[1]):
        raise UsageError(
            f"`{old[0]}` comes after `{new[0]}`",
            why="--old names the earlier commit, --new the later one",
            next_step="swap --old and --new",
        )
    base = _merge_base(repository, old[1], new[1])
    raise UsageError(
        f"`{old[0]}` is no ancestor of `{new[0]}`",
        why=f"they parted at {base[:12]}" if base else "they have no commit in common",
        next_step=f"--old {base[:12]}" if base else "in a shallow clone: `git fetch --unshallow`",
    )


def _is_ancestor(repository: Repository, early: str, late: str) -> bool:
    try:
        git(repository.path, "merge-base", "--is-ancestor", early, late)
    except GitError:
        return False
    return True


def _merge_base(repository: Repository, one: str, other: str) -> str:
    try:
        return git(repository.path, "merge-base", one, other).strip()
    except GitError:
        return ""
