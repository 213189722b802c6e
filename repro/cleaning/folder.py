"""The kit's own files in a results folder: caches, leftovers of killed runs, results."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from repro.cleaning.items import Item, Kind, removed, size
from repro.errors import UsageError

_STAMPED = r"\d{8}T\d{6}-[0-9a-f]{6,8}"
_REVISION = r"(?:content-[0-9a-f]{12}|[0-9a-f]{40}(?:[0-9a-f]{24})?).*"


@dataclass(frozen=True)
class _Place:
    """Things of one sort: in the folders on a way of names, those whose own names match; all are patterns."""

    kind: Kind
    folder: str
    name: str
    about: str


_DIAGNOSIS = "diagnosis"
"""Keeps a ledger of its own, with all that belongs to one, beside its experiments."""

_EXPERIMENTS = ("adapter", "beside", _DIAGNOSIS, "kernels", "looks", "minimize", "scripts")
"""Folders with records of trials that enter no rate."""

_OF_A_RUN = (
    _Place(Kind.LEFTOVER, "tmp", "context-.*", "contexts of image builds"),
    _Place(Kind.LEFTOVER, "running", r"repro-.*\.json", "notes of trial processes"),
    _Place(Kind.LEFTOVER, r"subjects/\d+", r"\.draft-.*", "half-made copies of the code under test"),
    _Place(Kind.LEFTOVER, f"blocks/{_STAMPED}", "tmp", "temporary files of trials"),
    *(
        _Place(Kind.LEFTOVER, f"{name}/{_STAMPED}", "tmp", "temporary files of trials")
        for name in _EXPERIMENTS
    ),
    _Place(Kind.LEFTOVER, "merged", r"\.\d+\.part", "half-made copies of ledgers"),
    _Place(Kind.LEFTOVER, "inputs", r"\.[0-9a-f]{64}\.pt\..*", "half-made copies of kept inputs"),
    _Place(Kind.LEFTOVER, "report", r"\..*\.part", "half-written reports"),
    _Place(Kind.LEFTOVER, ".", r"ledger\.sqlite\.rebuild(?:-wal|-shm)?|diagnosis\.part", "half-made ledgers"),
    _Place(Kind.CACHE, "subjects", rf"\d+|notes-\d+|{_REVISION}", "copies of the code under test"),
    _Place(Kind.CACHE, "mirrors", r".*-[0-9a-f]{12}", "copies of repositories elsewhere"),
    _Place(Kind.CACHE, "test-files", "[0-9a-f]{12}", "copies of test files"),
    _Place(Kind.CACHE, "cache", "[0-9a-f]{12}|factor-.*", "compiled kernels"),
    _Place(Kind.CACHE, "kernels/cache", r"\d{8}T\d{6}-[0-9a-f]{6}", "compiled kernels"),
    _Place(Kind.CACHE, "venvs", r"[0-9a-f]{16}(?:\.lock)?", "virtual environments of cells"),
    _Place(Kind.CACHE, "kit", r"\d+\.\d+.*", "the plugin, as runs began with it"),
    _Place(Kind.CACHE, "locks", "repro-.*", "locks of image builds"),
    _Place(Kind.RESULT, "report", r"report\.(?:md|html|zip)|script\.py", "the report"),
    _Place(Kind.RESULT, "searches", r"[0-9a-f]{12}\.json", "what searches found"),
    *(_Place(Kind.RESULT, name, _STAMPED, "records of experiments") for name in _EXPERIMENTS),
    _Place(Kind.RESULT, "logs", r"(?:build|bug)-.*\.(?:log|txt)", "logs of builds"),
    _Place(Kind.RESULT, "inputs", r"[0-9a-f]{64}\.pt", "kept inputs"),
    _Place(Kind.RESULT, "set-aside", r"\d{8}T\d{6}", "block files that were set aside"),
    _Place(Kind.RESULT, "merged", r"[0-9a-f]{16}\.sqlite", "merged ledgers"),
    _Place(Kind.RESULT, ".", r"diagnosis\.json", "the diagnosis"),
    _Place(Kind.RESULT, ".", r"minimized\.json", "the smallest case"),
    _Place(Kind.RESULT, "blocks", _STAMPED, "block files: the evidence"),
    _Place(Kind.RESULT, ".", r"builds\.jsonl", "what builds took"),
    _Place(Kind.RESULT, ".", r"ledger\.sqlite(?:-wal|-shm)?", "the ledger"),
)
"""What runs and commands write into a results folder."""

_PLACES = (
    *(
        replace(place, folder=_DIAGNOSIS if place.folder == "." else f"{_DIAGNOSIS}/{place.folder}")
        for place in _OF_A_RUN
    ),
    *_OF_A_RUN,
)
"""Everything that the kit writes there; in the order in which it is removed, the ledger last."""


def check_folder(state: Path) -> None:
    """Refuse a folder that no run had.

    Raises:
        UsageError: it is no results folder.
    """
    if not (state / "ledger.sqlite").is_file() and not state.resolve().name.startswith(".repro"):
        raise UsageError(
            f"{state.name} is no results folder",
            why="there is no ledger in it",
            next_step="name the folder that the runs had: repro clean --state DIR",
        )


def folder_items(state: Path, kinds: Collection[Kind]) -> list[Item]:
    """What the kit wrote into a results folder. Links are not followed.

    Args:
        state: the folder; it may be a link itself.
        kinds: of what is wanted.
    """
    state = state.resolve()
    found = [(place, sorted(_matching(state, place))) for place in _PLACES if place.kind in kinds]
    return [_item(state, place, paths) for place, paths in found if paths]


def links_in(state: Path) -> list[str]:
    """Names in a results folder that are links: whatever they lead to is left alone."""
    places = {place.folder for place in _PLACES if "\\" not in place.folder} - {"."}
    return sorted(name for name in places if (state / name).is_symlink())


def _item(state: Path, place: _Place, paths: Sequence[Path]) -> Item:
    return Item(
        kind=place.kind,
        name=paths[0].relative_to(state).parts[0],
        about=place.about,
        count=len(paths),
        bytes=sum(map(size, paths)),
        remove=partial(_remove, state, paths),
    )


def _remove(state: Path, paths: Sequence[Path]) -> str:
    problems = [why for path in paths if (why := removed(path))]
    for folder in {path.parent for path in paths}:
        _remove_empty(state, folder)
    return "; ".join(problems[:3])


def _remove_empty(state: Path, folder: Path) -> None:
    """Remove a folder that holds nothing any more, and those above it; never the results folder."""
    while folder != state:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _matching(state: Path, place: _Place) -> Iterator[Path]:
    pattern = re.compile(place.name)
    for folder in _folders(state, place.folder):
        if place.name.isalpha():
            yield from [folder / place.name] if os.path.lexists(folder / place.name) else []
        else:
            yield from (path for path in folder.iterdir() if pattern.fullmatch(path.name))


def _folders(state: Path, way: str) -> list[Path]:
    """The folders on a way, without going through links."""
    level = [state]
    for part in [] if way == "." else way.split("/"):
        pattern = re.compile(part)
        level = [path for folder in level for path in _inside(folder, pattern)]
    return level


def _inside(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    with os.scandir(folder) as found:
        named = [each for each in found if pattern.fullmatch(each.name)]
    return [Path(each.path) for each in named if each.is_dir(follow_symlinks=False)]
