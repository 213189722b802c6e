"""Where the code under test is: `--subject PATH_OR_URL[@REV]` laid over matrix.yaml."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from repro.config import SubjectSpec
from repro.errors import UsageError
from repro.ui import one_line

LONGEST = 2000
"""Characters of a subject's place."""

_URL = re.compile(r"(?P<host>[a-z][a-z0-9+.-]*://[^/]*|[\w.-]+@[\w.-]+:)(?P<path>[^@]*)(?:@(?P<rev>.+))?")
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")


def override(spec: SubjectSpec, *, location: str | None = None, test: str | None = None) -> SubjectSpec:
    """The subject of matrix.yaml with what the command line says instead.

    Another repository keeps the test, but not `files` and `python_path`, which describe the first one.

    Args:
        spec: from matrix.yaml.
        location: `PATH_OR_URL[@REV]`; a path starts from the current folder.
        test: pytest's name of the target test, with or without `FILE.py::` before it.

    Raises:
        UsageError: when `location` is neither a folder nor a URL.
    """
    if location is not None:
        spec = _moved(spec, location)
    if test is not None:
        file, separator, name = test.partition(".py::")
        spec = replace(spec, test=name, test_file=f"{file}.py") if separator else replace(spec, test=test)
    return spec


def folder_of(spec: SubjectSpec) -> Path | None:
    """The subject's folder on this machine, or None for a URL."""
    return None if spec.path is None else (spec.base / _at_home(spec.path)).resolve()


def address_of(spec: SubjectSpec) -> tuple[str, str]:
    """The address that git fetches from, and what to show of it; a path starts from matrix.yaml's folder."""
    url = spec.git or ""
    local = spec.base / url
    return (str(local.resolve()), local.name) if is_folder(local) else (url, redacted(url))


def redacted(url: str) -> str:
    """A URL without the user name and password in it."""
    return _CREDENTIALS.sub("", url)


def _moved(spec: SubjectSpec, location: str) -> SubjectSpec:
    if len(location) > LONGEST or "\0" in location:
        raise UsageError(
            f"`{one_line(location)}` is no subject",
            why=f"a subject is a folder or a git URL, of {LONGEST} characters at most",
            next_step="check the path, or give a URL such as https://HOST/OWNER/NAME@main",
        )
    url = _URL.fullmatch(location)
    if url and not is_folder(Path(location)):
        place = replace(spec, path=None, git=url["host"] + url["path"], rev=url["rev"])
        return _without_layout(place) if place.git != spec.git else place
    path, rev = _split_path(location)
    place = replace(spec, path=str(path.resolve()), git=None, rev=rev)
    return place if folder_of(place) == folder_of(spec) else _without_layout(place)


def is_folder(path: Path) -> bool:
    """Whether it is a folder; a name that no file can have is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _at_home(path: str) -> Path:
    """A path with its `~` replaced, where there is such a user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _without_layout(spec: SubjectSpec) -> SubjectSpec:
    return replace(spec, files=(), python_path=())


def _split_path(location: str) -> tuple[Path, str | None]:
    """The longest beginning that is a folder, and what follows its `@`."""
    if is_folder(_at_home(location)):
        return _at_home(location), None
    at = location.rfind("@")
    while at > 0:
        folder = _at_home(location[:at])
        if is_folder(folder):
            return folder, location[at + 1 :]
        at = location.rfind("@", 0, at)
    raise UsageError(
        f"there is no folder `{one_line(location)}`",
        why="a subject is a folder or a git URL, with @REV after it for a branch, tag or commit",
        next_step="check the path, or give a URL such as https://HOST/OWNER/NAME@main",
    )
