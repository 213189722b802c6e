"""A set of files as names and content hashes: the same for a folder and for a commit with the same files."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from repro.errors import UsageError

FILE, EXECUTABLE, LINK = "100644", "100755", "120000"
"""Modes, as git writes them."""

_JUNK = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".jj",
        ".repro",
        ".venv",
        "venv",
        ".env",
        ".envrc",
        ".netrc",
        ".pypirc",
        ".ssh",
        ".aws",
    }
    | {
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        ".tox",
        ".nox",
        "node_modules",
    }
    | {".triton", ".cache", ".ipynb_checkpoints", ".DS_Store", ".idea", ".vscode"}
)
_SECRET_ENDINGS = (".pem", ".key", ".p12", ".pyc")


@dataclass(frozen=True, kw_only=True, order=True)
class Entry:
    """One file.

    Args:
        path: relative, with forward slashes.
        mode: FILE, EXECUTABLE or LINK.
        blob: git's hash of the content, or of a link's target.
    """

    path: str
    mode: str
    blob: str


def digest(entries: Iterable[Entry]) -> str:
    """Hash of names, modes and contents, 12 hexadecimal digits."""
    whole = hashlib.sha256()
    for entry in sorted(entries):
        whole.update(f"{entry.mode} {entry.blob}\t{entry.path}\0".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()[:12]


def is_junk(path: str) -> bool:
    """Whether a file that git does not track is no code: caches, environments, version control, secrets."""
    parts = PurePosixPath(path).parts
    return any(part in _JUNK for part in parts) or path.endswith(_SECRET_ENDINGS) or ".egg-info/" in path


def walk(root: Path, *, without: Path) -> Iterator[str]:
    """Relative names of the files below a folder, less junk, environments and the folder `without`."""
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = sorted(
            name
            for name in folders
            if name not in _JUNK
            and name not in links
            and here / name != without
            and not (here / name / "pyvenv.cfg").exists()
        )
        names = ((here / name).relative_to(root).as_posix() for name in sorted([*files, *links]))
        yield from (name for name in names if not is_junk(name))


def entries_of(root: Path, names: Iterable[str]) -> list[Entry]:
    """Hash the named files below a folder; what is neither a file nor a link is left out.

    Raises:
        UsageError: when a link points outside the folder, or a file cannot be read.
    """
    found = []
    for name in names:
        path = root / name
        try:
            if path.is_symlink():
                target = os.readlink(path)  # noqa: PTH115 - a Path would tidy the target
                check_link(name, target)
                found.append(Entry(path=name, mode=LINK, blob=_blob(os.fsencode(target))))
            elif path.is_file():
                mode = EXECUTABLE if path.stat().st_mode & 0o100 else FILE
                found.append(Entry(path=name, mode=mode, blob=_blob(path.read_bytes())))
        except OSError as error:
            raise UsageError(
                f"`{name}` of the subject cannot be read: {error.strerror}",
                next_step="make it readable, or leave it out: name the needed folders under subject.files",
            ) from None
    return found


def copy(root: Path, names: Iterable[str], target: Path) -> None:
    """Copy files and links, byte for byte, without following links."""
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, target / name, follow_symlinks=False)


def write(target: Path, name: str, mode: str, content: bytes) -> None:
    """Write one file of a commit.

    Raises:
        UsageError: for a name or a link that leads outside `target`.
    """
    check_name(name)
    path = target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode == LINK:
        link = os.fsdecode(content)
        check_link(name, link)
        path.symlink_to(link)
    else:
        path.write_bytes(content)
        path.chmod(0o755 if mode == EXECUTABLE else 0o644)


def freeze(root: Path) -> None:
    """Take the right to write from every file and folder, and let everybody read them."""
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(0o555 if path.stat().st_mode & 0o100 else 0o444)
        Path(folder).chmod(0o555)


def within(name: str, parts: Sequence[str]) -> bool:
    """Whether a file is one of, or below one of, the parts; no parts mean everything."""
    return not parts or any(part == "." or name == part or name.startswith(f"{part}/") for part in parts)


def check_name(name: str) -> None:
    """Refuse names that git itself would not check out."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or part.casefold() == ".git" for part in parts):
        raise UsageError(f"the subject has a file named `{name}`, which leads outside it")


def check_link(name: str, target: str) -> None:
    """Refuse a link that leads outside.

    Only leading `..` can be followed by name alone: behind another link, `..` may be anywhere.
    """
    depth = len(PurePosixPath(name).parts) - 1
    parts = PurePosixPath(target).parts
    up = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    if target.startswith("/") or up > depth or ".." in parts[up:]:
        raise UsageError(
            f"the subject's link `{name}` points outside it, to `{target}`",
            why="trials see the subject alone, so that nothing beside it can leak in",
            next_step="put the file in its place, or name the folders without the link under subject.files",
        )


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
