"""The archive: hashes are true, texts are redacted, the ledger in it is a ledger, links are not followed."""

from __future__ import annotations

import csv
import hashlib
import json
import zipfile

import pytest
from report_ledgers import CELLS, TEST, big_ledger, flake, open_ledger, write_cell

from repro.report import Redactor, gather, redacted_report
from repro.report import bundle as bundles
from repro.report.bundle import make_bundle, write_bundle
from repro.report.redact import Names
from repro.store import Ledger
from repro.store.copying import copy_ledger

NAMES = Names(home="/home/carol", user="carol")
LEAK = "in /home/carol/secret/op.py by carol"


@pytest.fixture
def pack(home, tmp_path):
    """Write the archive of `home`; its members by name, and the manifest."""

    def packed(**more):
        redactor = Redactor(names=NAMES)
        with open_ledger(home) as ledger:
            report = gather(ledger, home)
            clean = redacted_report(report, redactor)
            about = (report.test, report.revision)
            with make_bundle(ledger, home, about, clean, {"report.md": b"text"}, redactor, **more) as bundle:
                write_bundle(bundle, tmp_path / "report.zip")
        with zipfile.ZipFile(tmp_path / "report.zip") as archive:
            assert archive.testzip() is None
            files = {name: archive.read(name) for name in archive.namelist()}
        return files, json.loads(files.pop("manifest.json"))

    return packed


def keep_inputs(home, block, seed, content, *, path=None, sha256=None):
    """Write kept inputs of a seed and their record."""
    folder = home / "blocks" / block
    name = path or f"inputs/seed{seed}.pt"
    if path is None:
        (folder / "inputs").mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    event = {"event": "inputs", "trial": seed, "seed": seed, "time": 99.0, "path": name}
    event["sha256"] = sha256 or hashlib.sha256(content).hexdigest()
    with (folder / "records.jsonl").open("a") as file:
        file.write(json.dumps(event) + "\n")


def test_the_manifest_is_true(home, pack):
    flake(home)
    keep_inputs(home, "b0", 1, b"bits of one")
    keep_inputs(home, "b1", 1, b"bits of one")
    (home / "logs").mkdir()
    (home / "logs" / "build-x.log").write_text(LEAK)
    files, manifest = pack()
    assert set(manifest["files"]) == set(files)
    for name, facts in manifest["files"].items():
        assert facts["sha256"] == hashlib.sha256(files[name]).hexdigest()
        assert facts["bytes"] == len(files[name])
    inputs = [name for name in files if name.startswith("inputs/")]
    assert [files[name] for name in inputs] == [b"bits of one"]
    assert files["logs/build-x.log"] == b"in <path>/op.py by <user>"
    assert manifest["left_out"] == []


def test_the_same_evidence_gives_the_same_archive(home, pack, tmp_path):
    flake(home)
    pack()
    first = (tmp_path / "report.zip").read_bytes()
    pack()
    assert (tmp_path / "report.zip").read_bytes() == first


def test_no_text_in_it_identifies(home, pack):
    write_cell(home, "b0", CELLS[0], failing=(1,), message=LEAK, facts={"env": {"HOME": "/home/carol"}})
    (home / "searches").mkdir()
    (home / "searches" / "a.json").write_text(
        json.dumps({"about": {"repo": "/home/carol/k"}, "answer": None})
    )
    (home / "builds.jsonl").write_text(
        json.dumps({"cell": CELLS[0], "digest": "d", "ok": True, "seconds": 1, "log_tail": LEAK, "time": 1})
        + "\n"
    )
    files, _ = pack()
    assert "searches/a.json" in files
    for name, content in files.items():
        assert b"carol" not in content, name
    environment = json.loads(files["environment.json"])
    assert environment["cells"][0]["digest"] == "d"


def test_the_ledger_in_it_is_one(home, pack, tmp_path):
    flake(home)
    write_cell(home, "r", CELLS[1], failing=range(20), trials=20, mode="repeat")
    files, _ = pack()
    copy = tmp_path / "theirs" / "ledger.sqlite"
    copy.parent.mkdir()
    copy.write_bytes(files["ledger.sqlite"])
    with open_ledger(home) as mine, Ledger.open(copy) as theirs:
        assert theirs.tallies() == mine.tallies()
        assert {tally.series: dict(tally.counts) for tally in theirs.tallies()} == theirs.recount()
        assert mine.merge(copy) == 0
    rows = list(csv.DictReader(files["rates.csv"].decode().splitlines()))
    assert (rows[0]["cell"], rows[0]["failed"], rows[0]["trials"]) == (CELLS[0], "4", "40")


def test_inputs_that_are_not_what_was_recorded(home, pack, tmp_path):
    flake(home, cells=CELLS[:1])
    (tmp_path / "secret.pt").write_bytes(b"secret")
    keep_inputs(home, "b0", 1, b"bits", sha256="0" * 64)
    keep_inputs(home, "b0", 5, b"secret", path="../../../secret.pt")
    (home / "blocks" / "b0" / "link.pt").symlink_to(tmp_path / "secret.pt")
    keep_inputs(home, "b0", 9, b"secret", path="link.pt")
    files, manifest = pack()
    assert not [name for name in files if name.startswith("inputs/")]
    assert [line.split(":")[0] for line in manifest["left_out"]] == [
        f"inputs of seed {seed} ({CELLS[0]})" for seed in (1, 9)
    ], "a path out of its block never reaches the ledger"


def test_inputs_that_are_too_large(home, pack, monkeypatch):
    flake(home, cells=CELLS[:1])
    keep_inputs(home, "b0", 1, b"12345")
    keep_inputs(home, "b0", 5, b"67890")
    monkeypatch.setattr(bundles, "INPUT_BYTES", 7)
    files, manifest = pack()
    assert sum(name.startswith("inputs/") for name in files) == 1
    assert manifest["left_out"][0].startswith("1 kept input, 5e-06 MB: ")
    files, manifest = pack(all_inputs=True)
    assert sum(name.startswith("inputs/") for name in files) == 2
    assert not manifest["left_out"]


def test_of_a_large_ledger_a_part(tmp_path, monkeypatch):
    big_ledger(tmp_path / "big.sqlite", trials=3000, cells=3)
    monkeypatch.setattr("repro.store.copying.WHOLE", 600)
    redactor = Redactor(names=NAMES)
    assert copy_ledger(tmp_path / "big.sqlite", tmp_path / "a.sqlite", redactor.text) == (600, 3000)
    assert copy_ledger(tmp_path / "big.sqlite", tmp_path / "b.sqlite", redactor.text, whole=True) == (
        3000,
        3000,
    )
    with Ledger.open(tmp_path / "a.sqlite") as part:
        assert [tally.n for tally in part.tallies(test=TEST)] == [200, 200, 200]
        assert {tally.series: dict(tally.counts) for tally in part.tallies()} == part.recount()
