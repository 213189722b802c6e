"""A version out of git's tags, as setuptools-scm guesses it; for packages that write none down."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.version import Version

from repro.subject.declared import BuildFiles, at
from repro.subject.git import GitError, git

_DESCRIBED = re.compile(r"(?P<tag>.+)-(?P<distance>\d{1,9})-g[0-9a-f]+")
_TAG = re.compile(r"(?:[\w-]+-)?(?P<version>[vV]?\d+(?:\.\d+){0,2}[^+]*)(?:\+.*)?", re.ASCII)
"""setuptools-scm's own default: `1.2`, `v1.2.3rc1` or `name-1.2`."""
_LAST_NUMBER = re.compile(r"(.*?)(\d+)")
_LONGEST = 100
"""Characters of a tag that may be a version."""
_TOOLS = re.compile(
    r"(setuptools|flit|hatch)[-_.](scm|vcs)|versioningit|poetry-dynamic-versioning|versioneer"
)


def version_from_tags(repository: Path, commit: str) -> str:
    """X.Y.Z at a tag, else the next one as `X.Y.Z.devN+gID`, N commits on; "" where the tag is no version.

    Without any tag it is `0.1.devN+gID`. The rules are those of setuptools-scm's `guess-next-dev`.

    Args:
        repository: folder or bare repository.
        commit: full id.
    """
    try:
        said = git(repository, "describe", "--tags", "--long", "--match", "*[0-9]*", commit).strip()
    except GitError:
        return _untagged(repository, commit)
    found = _DESCRIBED.fullmatch(said)
    tagged = _parsed(found["tag"]) if found else None
    if found is None or tagged is None:
        return ""
    distance = int(found["distance"])
    return f"{_next(tagged)}.dev{distance}{_local(commit)}" if distance else tagged.public


def takes_tags(files: BuildFiles) -> bool:
    """Whether a package's version comes from git's tags, whatever else its files say of it."""
    project, required = at(files.pyproject, "project"), at(files.pyproject, "build-system", "requires")
    backend = [
        *(required if isinstance(required, list) else ()),
        at(files.pyproject, "build-system", "build-backend"),
    ]
    named = any(isinstance(text, str) and _TOOLS.match(text) for text in backend)
    dynamic = at(project, "dynamic")
    return (
        bool(files.setup.get("use_scm_version"))
        or bool(files.tool("poetry-dynamic-versioning", "enable"))
        or files.tool("hatch", "version", "source") in ("vcs", "versioningit")
        or files.tool("pdm", "version", "source") == "scm"
        or "versioneer" in files.config
        or (named and (at(project, "version") is None if dynamic is None else "version" in dynamic))
    )


def _untagged(repository: Path, commit: str) -> str:
    try:
        count = git(repository, "rev-list", "--count", commit).strip()
    except GitError:
        return ""
    return f"0.1.dev{count}{_local(commit)}"


def _parsed(tag: str) -> Version | None:
    found = _TAG.fullmatch(tag) if len(tag) <= _LONGEST else None
    try:
        return Version(found["version"]) if found else None
    except ValueError:
        return None


def _next(tagged: Version) -> str:
    """The version after a tagged one: its last number, one higher; that of a development version as it is."""
    base, developed, _ = tagged.public.rpartition(".dev")
    if developed:
        return base
    found = _LAST_NUMBER.fullmatch(tagged.public)
    return f"{found[1]}{int(found[2]) + 1}" if found else tagged.public


def _local(commit: str) -> str:
    return f"+g{commit[:7]}"
