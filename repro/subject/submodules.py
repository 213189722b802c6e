"""What submodules of a commit hold, as far as the repository has copies of them; nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from repro.subject import tree
from repro.subject.git import GitError, git
from repro.subject.repository import tree_entries

_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_DEEPEST = 5
_MOST = 100
"""Submodules of one commit, nested ones included."""
_MOST_FILES = 500_000
_LARGEST = 2**20
"""Bytes of a .gitmodules."""
_LINK = "160000 "


@dataclass
class Held:
    """What was found of the submodules of a commit.

    Args:
        entries: their files, by their place in the commit.
        homes: folders that git keeps their repositories in; objects are read from `homes/objects`.
        missing: submodules that are not there, each with the reason.
        looked: submodules that were looked for.
    """

    entries: list[tree.Entry] = field(default_factory=list)
    homes: list[Path] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    looked: int = 0

    @property
    def objects(self) -> tuple[Path, ...]:
        """Where git finds the contents of the entries, beside the repository itself."""
        return tuple(home / "objects" for home in self.homes)


@dataclass(frozen=True)
class _Level:
    """A repository's commit, whose submodules are looked for.

    Args:
        commit: full id.
        root: folder of the commit that is looked at, ending in `/`, or "".
        at: where that folder lies in the copy, ending in `/`, or "".
        modules: folders that may hold the submodules' repositories.
        depth: levels above it.
    """

    commit: str
    root: str
    at: str
    modules: tuple[Path, ...]
    depth: int = 0


def submodules_of(repository: Path, commit: str, prefix: str, files: Sequence[str]) -> Held:
    """The files of all submodules of a commit, nested ones included.

    The commit names them, and may be hostile: a name leads nowhere but below the repository's own `modules`,
    and objects are read through the repository itself, so that no configuration of a submodule plays a part.

    Args:
        repository: folder or bare repository.
        commit: full id.
        prefix: folder of the repository that is the root of the copy, ending in `/`, or "".
        files: parts below the prefix; empty for all.
    """
    held = Held()
    links = _links(repository, commit, prefix, held)
    if links:
        modules = tuple(folder / "modules" for folder in git_folders(repository))
        _fill(repository, _Level(commit, prefix, "", modules), links, files, held)
    return held


def git_folders(repository: Path) -> list[Path]:
    """The folders that git keeps a repository in: that of a worktree, and the common one."""
    said = git(repository, "rev-parse", "--git-dir", "--git-common-dir").splitlines()
    return list(dict.fromkeys((repository / folder).resolve() for folder in said))


def _fill(
    repository: Path, level: _Level, links: Sequence[tuple[str, str]], files: Sequence[str], held: Held
) -> None:
    names = _names(repository, level, held)
    for path, commit in links:
        place = f"{level.at}{path}"
        if not _wanted(place, files):
            continue
        held.looked += 1
        home, why = _home(level, names.get(f"{level.root}{path}"), held)
        entries = _entries(repository, commit, home, held) if home is not None else None
        if home is None or entries is None:
            held.missing.append((place, why or f"the repository's copy of it lacks commit {commit[:12]}"))
            continue
        held.homes += [home] if home not in held.homes else []
        found = (tree.Entry(path=f"{place}/{one.path}", mode=one.mode, blob=one.blob) for one in entries)
        held.entries += [entry for entry in found if tree.within(entry.path, files)]
        if inner := _links(repository, commit, "", held):
            below = _Level(commit, "", f"{place}/", (home / "modules",), level.depth + 1)
            _fill(repository, below, inner, files, held)


def _wanted(place: str, files: Sequence[str]) -> bool:
    """Whether a part is the submodule, above it or inside of it."""
    return tree.within(place, files) or any(part.startswith(f"{place}/") for part in files)


def _links(repository: Path, commit: str, root: str, held: Held) -> list[tuple[str, str]]:
    """Paths and commits of the submodules that a folder of a commit names itself."""
    asked = ("ls-tree", "-r", "-z", "--full-tree", f"{commit}:{root}")
    rows = git(repository, *asked, alternates=held.objects).split("\0")
    links = []
    for row in rows:
        facts, _, path = row.partition("\t")
        linked = facts.rpartition(" ")[2]
        if facts.startswith(_LINK) and _ID.fullmatch(linked):
            links.append((path, linked))
    return links


def _names(repository: Path, level: _Level, held: Held) -> dict[str, str]:
    """By path from the top of its repository, what a commit calls each submodule."""
    blob = f"{level.commit}:.gitmodules"
    asked = ("config", "--blob", blob, "-z", "--no-includes", "--get-regexp", r"^submodule\..*\.path$")
    try:
        if int(git(repository, "cat-file", "-s", blob, alternates=held.objects)) > _LARGEST:
            return {}
        said = git(repository, *asked, alternates=held.objects)
    except GitError:
        return {}
    pairs = (row.partition("\n") for row in said.split("\0") if row)
    return {path: key.removeprefix("submodule.").removesuffix(".path") for key, _, path in pairs}


def _home(level: _Level, name: str | None, held: Held) -> tuple[Path | None, str]:
    """Where git keeps the repository of a submodule, or None and why there is none."""
    if name is None:
        return None, "the commit's .gitmodules does not name it"
    if not _is_name(name):
        return None, "its name leads outside the repository"
    if level.depth >= _DEEPEST or held.looked > _MOST or len(held.entries) > _MOST_FILES:
        return None, "there are too many"
    for modules in level.modules:
        home = modules / name
        inside = home.resolve() == modules.resolve() / name  # no link on the way, wherever it leads
        if inside and (home / "HEAD").is_file() and (home / "objects").is_dir():
            return home, ""
    return None, "the repository has no copy of it; `git submodule update --init` there makes one"


def _is_name(name: str) -> bool:
    """As git itself checks them; and none that would end a list of folders."""
    parts = name.split("/")
    return (
        name.isprintable() and len(name) < 1000 and not {"", ".", ".."} & {*parts} and not {*name} & {*'\\:"'}
    )


def _entries(repository: Path, commit: str, home: Path, held: Held) -> list[tree.Entry] | None:
    try:
        return tree_entries(repository, commit, alternates=(*held.objects, home / "objects"))
    except GitError:
        return None
