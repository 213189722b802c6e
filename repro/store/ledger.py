"""Filling the ledger: from block files, from another ledger, and from nothing but the evidence."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from repro.errors import NotReadyError, UsageError
from repro.store import foreign, schema, writes
from repro.store.blocks import Request, read_request, whole_lines
from repro.store.events import Cursor, read_batch
from repro.store.model import Build, Ingested
from repro.store.queries import Queries
from repro.trial.plain import plain_size


class Ledger(Queries):
    """The ledger of one `.repro` folder; a context manager; may be shared by threads.

    Beside the database lies its evidence: `blocks/` (what trials recorded), `builds.jsonl` (what builds
    took) and `merged/` (other people's ledgers as they were merged in).
    """

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        super().__init__(db, path, threading.RLock())

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Open or make the ledger; a new one takes in all evidence that lies beside it.

        Raises:
            NotReadyError: it cannot be opened or written, is damaged, no ledger, or made by a newer kit.
        """
        db, new = schema.connect(path)
        ledger = cls(db, path)
        try:
            if new:
                ledger._take_in_evidence(path.parent / "blocks")
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def rebuild(cls, path: Path, blocks: Path | None = None) -> Ledger:
        """Make the ledger anew from its evidence, whatever state it is in, and open it.

        Args:
            path: the ledger; what is there is replaced once the new one is complete.
            blocks: folder of the block folders; `blocks/` beside the ledger unless given.
        """
        fresh = path.with_name(path.name + ".rebuild")
        _remove(fresh)
        db, _ = schema.connect(fresh)
        with cls(db, fresh) as ledger:
            ledger._take_in_evidence(blocks or path.parent / "blocks")
            with schema.explained(fresh):
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        _remove(path)  # its log first and last: a log beside another database would damage that one
        fresh.replace(path)
        _remove(fresh)
        return cls.open(path)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; what was ingested stays."""
        with self._lock:
            self._db.close()

    # Evidence into the ledger ----------------------------------------------------------------------------

    def ingest(self, folder: Path) -> Ingested:
        """Take in what a block file holds beyond the last look; whole lines only.

        Cheap when there is nothing new; may be called while the block is being written.

        Raises:
            NotReadyError: the disk is full or the ledger locked; nothing of this look is lost.
            NotReadyError: the ledger is damaged, or a newer kit wrote the block.
        """
        records = folder / "records.jsonl"
        size = plain_size(records)
        known = self._known(folder.name, size)
        if known is not None:
            return known
        request, problem = read_request(folder)
        if request is None:
            return Ingested(problem=problem)
        trials, more = 0, True
        while more:
            result, more = self._ingest_batch(folder, records, request)
            trials += result.trials
        return replace(result, trials=trials)

    def catch_up(self, blocks: Path | None = None) -> int:
        """Ingest every block folder; how many trials were new.

        Args:
            blocks: folder of the block folders; `blocks/` beside the ledger unless given.
        """
        blocks = blocks or self.path.parent / "blocks"
        read = self._read()
        names = sorted(name for name in _folders(blocks) if _size(blocks, name) != read.get(name))
        return sum(self.ingest(blocks / name).trials for name in names)

    def record_build(self, cell: str, digest: str, ok: bool, seconds: float, log_tail: str = "") -> None:
        """Record an attempt to make a cell, in `builds.jsonl` first.

        Args:
            digest: content hash of what went into the cell.
            seconds: wall clock.
            log_tail: the last lines of its log.

        Raises:
            NotReadyError: the disk is full.
        """
        build = Build(cell=cell, digest=digest, ok=ok, seconds=seconds, log_tail=log_tail, time=time.time())
        evidence = self.path.parent / "builds.jsonl"
        try:
            with evidence.open("ab", buffering=0) as file:
                file.write(json.dumps(vars(build)).encode() + b"\n")
        except OSError as error:
            raise NotReadyError(
                f"Could not write to {evidence}: {error.strerror}.",
                why="The disk is full or the folder is read-only.",
                next_step="Make room and give the same command again: it goes on where it stopped.",
            ) from error
        with self._transaction() as db:
            writes.add_build(db, build)

    def merge(self, other: Path) -> int:
        """Join another person's ledger to this one, nothing counted twice; how many trials were new.

        A copy of it is kept in `merged/`, since its block files are not here.

        Raises:
            UsageError: there is no such file, or it holds what no kit writes.
            NotReadyError: it is damaged, no ledger, or made by a newer kit.
        """
        if not other.is_file():
            raise UsageError(
                f"There is no ledger {other}.",
                next_step="Name the ledger.sqlite file of the other .repro folder.",
            )
        copy = self._keep(other)
        with self._lock, schema.explained(self.path):
            self._db.execute("ATTACH ? AS other", (f"{copy}",))
            try:
                with self._transaction() as db:
                    return writes.merge_attached(db)
            finally:
                self._db.execute("DETACH other")

    # ---------------------------------------------------------------------------------------------------

    def _take_in_evidence(self, blocks: Path) -> None:
        self.catch_up(blocks)
        home = self.path.parent
        if (home / "builds.jsonl").exists():
            with self._transaction() as db:
                for build in _builds(home / "builds.jsonl"):
                    writes.add_build(db, build)
        for merged in sorted((home / "merged").glob("*.sqlite")):
            self.merge(merged)

    def _read(self) -> dict[str, int]:
        """How many bytes of each block file are in here; one question for all of them."""
        return dict(self._all("SELECT name, offset FROM blocks WHERE offset > 0"))

    def _known(self, name: str, size: int) -> Ingested | None:
        """What the last look at a block brought, where the block has not grown since."""
        rows = self._all(
            "SELECT garbled, running, ended FROM blocks WHERE name = ? AND offset = ?", name, size
        )
        if not rows or size == 0:
            return None
        garbled, running, ended = rows[0]
        return Ingested(garbled=garbled, running=writes.running_from(running), ended=bool(ended))

    def _ingest_batch(self, folder: Path, records: Path, request: Request) -> tuple[Ingested, bool]:
        with self._transaction() as db:  # the offset is read under the lock: two may look at one block
            block, cursor = writes.block_cursor(db, folder.name, request)
            lines = whole_lines(records, cursor.offset) if plain_size(records) else []
            batch = read_batch(lines, cursor, request)
            trials = writes.add_batch(db, block, request, batch)
            writes.save_cursor(db, block, request, cursor)
        return _result(trials, cursor), bool(lines)

    def _keep(self, other: Path) -> Path:
        """A copy of another ledger, named after what it holds."""
        home = self.path.parent / "merged"
        if other.parent.resolve() == home.resolve():
            return other
        home.mkdir(exist_ok=True)
        part = home / f".{time.time_ns()}.part"
        try:
            with schema.explained(other):
                source = sqlite3.connect(f"{other.resolve().as_uri()}?mode=ro", uri=True)
                try:
                    schema.check_version(source, other)
                    foreign.check(source, other)
                    source.execute("VACUUM INTO ?", (f"{part}",))
                finally:
                    source.close()
            return part.replace(home / f"{_sha256(part)[:16]}.sqlite")
        finally:
            part.unlink(missing_ok=True)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; other threads and processes wait."""
        with self._lock, schema.explained(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk makes SQLite roll back by itself
                    self._db.execute("ROLLBACK")
                raise


def _folders(blocks: Path) -> list[str]:
    """Names of the block folders."""
    try:
        with os.scandir(blocks) as found:
            return [each.name for each in found if each.is_dir()]
    except OSError:
        return []


def _size(blocks: Path, name: str) -> int:
    """Bytes of a block file; without a Path, of which there would be tens of thousands."""
    try:
        found = os.lstat(f"{blocks}/{name}/records.jsonl")
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _result(trials: int, cursor: Cursor) -> Ingested:
    return Ingested(trials=trials, garbled=cursor.garbled, running=cursor.running, ended=cursor.ended)


def _builds(path: Path) -> Iterator[Build]:
    for line in path.read_bytes().splitlines():
        try:
            fields: dict[str, Any] = json.loads(line)
            yield Build(**fields)
        except (ValueError, TypeError):  # cut off by a kill or a full disk
            continue


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove(path: Path) -> None:
    for suffix in ("-wal", "-shm", ""):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
