"""Package metadata that code asks for when it is imported, provided without a build."""

from __future__ import annotations

import re
from pathlib import Path

from repro.subject.declared import BuildFiles, Groups, entry_points, name_of, read_build_files
from repro.subject.generated import version_files
from repro.subject.layout import find_python_path, top_level
from repro.subject.versions import version_of

FOLDER = ".repro-metadata"
"""In a copy, what stands for an installed distribution; on the copy's python path."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_LEFT_OUT = ("pytest11", "console_scripts", "gui_scripts")


def furnish(root: Path, tagged: str = "") -> None:
    """Add to a new copy what a build of its package would have: metadata, and version files that git lacks.

    `importlib.metadata.version` and `pkg_resources` then answer as for an installed package. Nothing of the
    copy is executed, and none of its files changed. A copy without a named distribution stays as it is.

    Args:
        root: the copy.
        tagged: the version that git's tags say, or "".
    """
    files = read_build_files(root)
    name, folders = name_of(files), find_python_path(root)
    if name is None or not _NAME.fullmatch(name) or (root / FOLDER).exists():
        return
    version = version_of(files, root, folders, name, tagged)
    for path, content in version_files(files, root, folders, version):
        (root / path).write_text(content, encoding="utf-8")
    _write_distribution(root, files, name, version)


def furnished_version(root: Path) -> str:
    """The version that a copy was furnished with, or ""."""
    for path in root.glob(f"{FOLDER}/*.dist-info/METADATA"):
        _, _, rest = path.read_text(encoding="utf-8").partition("\nVersion: ")
        return rest.partition("\n")[0]
    return ""


def with_metadata(root: Path, python_path: tuple[str, ...]) -> tuple[str, ...]:
    """The python path of a copy, with its metadata where it has any."""
    return (*python_path, FOLDER) if (root / FOLDER).is_dir() else python_path


def _write_distribution(root: Path, files: BuildFiles, name: str, version: str) -> None:
    escaped = re.sub(r"[-_.]+", "_", name)
    folder = root / FOLDER / f"{escaped}-{version.replace('-', '_')}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8"
    )
    packages = [package for part in find_python_path(root) for package in top_level(root / part)]
    (folder / "top_level.txt").write_text("".join(f"{package}\n" for package in packages), encoding="utf-8")
    groups = {group: points for group, points in entry_points(files).items() if group not in _LEFT_OUT}
    if groups:
        (folder / "entry_points.txt").write_text(_entry_points(groups), encoding="utf-8")


def _entry_points(groups: Groups) -> str:
    lines = []
    for group, points in sorted(groups.items()):
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in sorted(points.items())), ""]
    return "\n".join(lines)
