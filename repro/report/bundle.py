"""The evidence in one archive: ledger, kept inputs, logs, environments, and the hash of each file."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro import ui
from repro.report.export import to_csv
from repro.report.model import Report
from repro.report.redact import Redactor
from repro.store import KeptInputs, Ledger
from repro.store.copying import copy_ledger

INPUT_BYTES = 16 * 2**20
"""Of kept inputs in a bundle, unless all are asked for: an issue takes an archive of 25 MB."""

LOG_BYTES = 256 * 1024
"""Of each log: its end."""

LOGS = 200
"""Logs at most."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Every member's time: the same evidence gives the same archive."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One file of the bundle: its bytes, or the file that holds them."""

    name: str
    content: bytes | Path
    about: str = ""

    def read(self) -> bytes:
        """All of it."""
        return self.content.read_bytes() if isinstance(self.content, Path) else self.content

    @property
    def size(self) -> int:
        """Bytes."""
        return self.content.stat().st_size if isinstance(self.content, Path) else len(self.content)


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """What goes into the archive, and what was left out of it, a sentence each."""

    members: Sequence[Member]
    left_out: Sequence[str]

    def manifest(self) -> bytes:
        """`manifest.json`: the SHA-256 and the size of every other file."""
        files = {
            member.name: {
                "sha256": hashlib.sha256(member.read()).hexdigest(),
                "bytes": member.size,
                **({"about": member.about} if member.about else {}),
            }
            for member in self.members
        }
        return _json({"files": files, "left_out": list(self.left_out)})


@contextmanager
def make_bundle(
    ledger: Ledger,
    state: Path,
    wanted: tuple[str, str],
    report: Report,
    pages: Mapping[str, bytes],
    redactor: Redactor,
    *,
    whole: bool = False,
    all_inputs: bool = False,
) -> Iterator[Bundle]:
    """Everything that the bundle holds, redacted; the copy of the ledger lives as long as the context.

    Args:
        wanted: test and revision whose kept inputs go in.
        report: redacted.
        pages: report.md, report.html and the script, as they are written.
        whole: copy all trials of the ledger, however many they are.
        all_inputs: take all kept inputs, however large they are.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "ledger.sqlite"
        copied, total = copy_ledger(ledger.path, copy, redactor.text, whole=whole)
        left_out = []
        if copied < total:
            left_out.append(
                f"ledger.sqlite holds {copied} of {ui.count(total, 'trial')};"
                " rates.csv counts all: --whole-ledger"
            )
        inputs, refused = _inputs(ledger, state, wanted, math.inf if all_inputs else INPUT_BYTES)
        yield Bundle(
            members=[
                *(Member(name=name, content=content) for name, content in pages.items()),
                Member(name="ledger.sqlite", content=copy, about=f"{copied} of {ui.count(total, 'trial')}"),
                Member(name="rates.csv", content=to_csv(redactor.value(ledger.tallies())).encode()),
                Member(name="environment.json", content=_environment(report)),
                *inputs,
                *_logs(state, redactor),
            ],
            left_out=[*left_out, *map(redactor.text, refused)],
        )


def write_bundle(bundle: Bundle, path: Path) -> None:
    """Write the archive; it appears whole or not at all."""
    draft = path.with_name(f".{path.name}.part")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for member in bundle.members:
            packed = zipfile.ZIP_STORED if member.name.endswith(".pt") else zipfile.ZIP_DEFLATED
            archive.writestr(_entry(member.name, packed), member.read())
        archive.writestr(_entry("manifest.json", zipfile.ZIP_DEFLATED), bundle.manifest())
    draft.replace(path)


def _entry(name: str, packed: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = packed
    entry.external_attr = 0o644 << 16
    return entry


def _environment(report: Report) -> bytes:
    return _json(
        {
            "kit": report.kit,
            "test": report.test,
            "revision": report.revision,
            "cells": [
                {"cell": each.cell, "digest": report.digests.get(each.cell), "facts": dict(each.facts)}
                for each in report.environments
            ],
        }
    )


def _inputs(
    ledger: Ledger, state: Path, wanted: tuple[str, str], room: float
) -> tuple[list[Member], list[str]]:
    """Kept inputs whose bytes are what was recorded, each content once, as long as there is room."""
    members: dict[str, Member] = {}
    refused, too_large = list[str](), dict[str, int]()
    for kept in _kept(ledger, wanted):
        file = _recorded(state, kept)
        if file is None:
            refused.append(
                f"inputs of seed {kept.seed} ({kept.series.cell}): not here, or not what was recorded"
            )
        elif kept.sha256 not in members and (size := file.stat().st_size) <= room:
            room -= size
            about = f"seed {kept.seed} in {kept.series.cell}"
            members[kept.sha256] = Member(name=f"inputs/{kept.sha256[:16]}.pt", content=file, about=about)
        elif kept.sha256 not in members:
            too_large[kept.sha256] = size
    return list(members.values()), [*refused[:50], *_too_large(too_large.values())]


def _too_large(sizes: Collection[int]) -> Iterator[str]:
    if sizes:
        yield (
            f"{ui.count(len(sizes), 'kept input')}, {sum(sizes) / 1e6:.3g} MB: an issue takes no archive of"
            " that size, and their seeds draw them again: --all-inputs"
        )


def _kept(ledger: Ledger, wanted: tuple[str, str]) -> Iterator[KeptInputs]:
    for tally in ledger.tallies():
        if (tally.series.test, tally.series.revision) == wanted:
            yield from (kept for kept in ledger.kept_inputs(tally.series) if kept.path)


def _recorded(state: Path, kept: KeptInputs) -> Path | None:
    """The file that a trial wrote, if it is what was recorded; a trial's link is not followed."""
    block = (state / "blocks" / kept.block).resolve()
    file = (block / kept.path).resolve()
    known = state / "inputs" / f"{kept.sha256}.pt"
    for path in (known, file):
        inside = path is known or path.is_relative_to(block)
        if inside and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == kept.sha256:
            return path
    return None


def _logs(state: Path, redactor: Redactor) -> Iterator[Member]:
    """The ends of builds' logs, and what the diagnosis and the searches wrote."""
    files = [*sorted((state / "logs").glob("*"))[:LOGS], state / "diagnosis.json", state / "minimized.json"]
    files += sorted((state / "searches").glob("*.json"))[:LOGS]
    for path in files:
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - LOG_BYTES) if path.suffix != ".json" else 0)
                text = file.read().decode("utf-8", "replace")
            yield Member(name=f"{path.parent.name if path.parent != state else 'logs'}/{path.name}",
                         content=redactor.text(text).encode())  # fmt: skip


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
