"""Wheels in folders of this machine: which one fits, and those that uv cannot read."""

from __future__ import annotations

import platform
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from email.parser import BytesParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from repro.cells import Cell


def folder_of(place: str) -> Path | None:
    """The folder that a find-links entry names, or None for a page of the web."""
    parts = urlsplit(place)
    if parts.scheme not in ("", "file"):
        return None
    return Path(unquote(parts.path) if parts.scheme else place)


def local_wheel(find_links: Iterable[str], cell: Cell) -> str | None:
    """Version, with its build, of a torch wheel in a local folder that fits the cell's Python."""
    tag = "cp" + cell.python.replace(".", "")
    for place in find_links:
        folder = folder_of(place)
        if folder is None:
            continue
        for build in (f"+{cell.cuda}", f"%2B{cell.cuda}"):
            if any(folder.glob(f"torch-{cell.torch}{build}-{tag}-*_{platform.machine()}.whl")):
                return f"{cell.torch}+{cell.cuda}"
    return None


def requirements_of(wheel: Path) -> list[str]:
    """What a wheel's metadata ask for, extras included, as requirements with their markers."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        message = BytesParser().parsebytes(archive.read(name), headersonly=True)
    return message.get_all("Requires-Dist", [])


def unreadable_by_uv(wheel: Path) -> bool:
    """Whether a wheel is packed with LZMA, as wheels for a slow link are; pip reads that and uv does not."""
    with zipfile.ZipFile(wheel) as archive:
        return any(entry.compress_type == zipfile.ZIP_LZMA for entry in archive.infolist())


def readable(wheel: Path, folder: Path) -> Path:
    """The wheel itself, or a copy in `folder` without compression where uv could not read it."""
    if not unreadable_by_uv(wheel):
        return wheel
    copy = folder / wheel.name
    with zipfile.ZipFile(wheel) as packed, zipfile.ZipFile(copy, "w", zipfile.ZIP_STORED) as plain:
        for entry in packed.infolist():
            data = packed.read(entry)
            entry.compress_type = zipfile.ZIP_STORED
            plain.writestr(entry, data)
    return copy


@contextmanager
def for_resolver(find_links: Sequence[str]) -> Iterator[tuple[tuple[str, ...], dict[str, Path]]]:
    """Folders that uv can resolve from, and the wheels that their names stand for.

    uv opens a wheel for its metadata, and gives up at one that it cannot unpack: a folder with such wheels is
    replaced by one that has their metadata alone.
    """
    with tempfile.TemporaryDirectory(prefix="repro-wheels-") as name:
        places, originals = [], {}
        for number, place in enumerate(find_links):
            folder = folder_of(place)
            wheels = sorted(folder.glob("*.whl")) if folder else []
            if not any(unreadable_by_uv(wheel) for wheel in wheels):
                places.append(place)
                continue
            stand_in = Path(name, str(number))
            stand_in.mkdir()
            for wheel in wheels:
                originals[wheel.name] = wheel
                _stand_in(wheel, stand_in / wheel.name)
            places.append(str(stand_in))
        yield tuple(places), originals


def _stand_in(wheel: Path, target: Path) -> None:
    if not unreadable_by_uv(wheel):
        target.symlink_to(wheel.resolve())
        return
    with zipfile.ZipFile(wheel) as packed, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as metadata:
        for entry in packed.namelist():
            if ".dist-info/" in entry:
                metadata.writestr(entry, packed.read(entry))
