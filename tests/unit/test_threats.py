"""What a hostile subject may try, and what stops it; docs/threat-model.md names the test behind each line."""

from __future__ import annotations

import json
import re
import sqlite3
import zipfile
from pathlib import Path

import pytest

from repro import ui
from repro.adapting import read_adapted
from repro.cli import run
from repro.config import ConfigError, SubjectSpec, load
from repro.errors import ReproError
from repro.inspect.records import read as read_probe
from repro.kernels.artefacts import collect
from repro.store import Ledger
from repro.store.sound import read_sound_events
from repro.subject import resolve
from repro.trial import plain

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "threat-model.md"
ESCAPES = "\x1b]0;pwned\x07\x1b[2J\x1b[31m\x9b31mred\r\x08"
REQUEST = {"cell": "torch2.9", "subject": "abc", "test": "test_op", "mode": "seeds", "seeds": [0, 1]}


def test_every_test_that_the_page_names_exists():
    named = re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8"))
    files = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    held = {name for text in files for name in re.findall(r"def (test_\w+)\(", text)}
    assert len(named) > 20
    assert sorted(set(named) - held) == []


def test_every_row_of_the_page_names_a_test():
    tried, _, _ = PAGE.read_text(encoding="utf-8").partition("## Bad input")
    rows = [line for line in tried.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith(("| what", "| ---"))]
    assert len(rows) >= 15
    assert [row for row in rows if not re.search(r"`test_\w+`", row)] == []


def write_block(home: Path, *events: dict, **asked) -> Path:
    folder = home / "blocks" / "b1"
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps({**REQUEST, **asked}))
    (folder / "records.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


def failed(seed: int = 0, **more) -> dict:
    signature = {"key": f"k{ESCAPES}", "source": ESCAPES, "function": ESCAPES, "file": ESCAPES, "line": 1}
    return {
        "event": "end", "trial": 0, "seed": seed, "outcome": "FAILED", "message": f"message{ESCAPES}",
        "signature": signature, **more,
    }  # fmt: skip


def controls(text: str) -> str:
    return "".join(letter for letter in text if not letter.isprintable() and letter not in "\n\t")


def test_escapes_in_records_reach_no_terminal(tmp_path, capfd):
    facts = {"event": "cell", "torch": ESCAPES, "imported": [], ESCAPES: 1}
    folder = write_block(tmp_path, facts, failed(), test=f"test_op[{ESCAPES}]")
    for command in ("status", "report", "export --junit", "export --csv"):
        assert run([*command.split(), "--state", str(tmp_path)]) == 0
    said = capfd.readouterr()
    assert "test_op[" in said.out
    assert controls(said.out + said.err) == ""
    events = list(read_sound_events(folder / "records.jsonl"))
    assert [controls(json.dumps(event, ensure_ascii=False)) for event in events] == ["", ""]
    for page in ("report.md", "report.html"):
        assert controls((tmp_path / "report" / page).read_text()) == ""


def test_escapes_in_probes_adapters_and_kernels_are_taken_out(tmp_path):
    records = tmp_path / "probe.jsonl"
    step = {"event": "step", "n": 0, "op": f"op{ESCAPES}", "note": ESCAPES}
    trouble = {"event": "trouble", "message": f"no{ESCAPES}"}
    records.write_text("".join(json.dumps(each) + "\n" for each in (step, trouble)))
    (looked,) = read_probe(records).steps
    assert looked.op.startswith("op")
    (told,) = read_adapted(records, {}).troubles
    (tmp_path / "kernel.ttir").write_text(f"// {ESCAPES}\n")
    (kernel,) = collect(tmp_path)
    assert [controls(text) for text in (looked.op, looked.note, told, kernel.stages["ttir"])] == [""] * 4


def test_escapes_in_what_the_kit_says_reach_no_terminal(capsys):
    ui.say(f"subject {ESCAPES}")
    ui.print_error(ReproError(f"what {ESCAPES}", why=ESCAPES, next_step=ESCAPES))
    ui.print_table(("a",), [(ESCAPES,)], title=ESCAPES)
    said = capsys.readouterr()
    assert "red" in said.out
    assert controls(said.out + said.err) == ""


def test_forged_records_that_are_no_records_count_nowhere(tmp_path):
    forged = [
        failed(seed="0"), failed(seed=10**30), failed(outcome="SURELY"), failed(comparisons=[7]),
        failed(comparisons=[{"shape": ["a"]}]), failed(signature=[]), failed(time="yesterday"),
        failed(comparisons=[{"index": 0, "worst": [{"actual": 1}]}]), failed(duration={}), failed(seed=None),
        {"event": "inputs", "seed": 0, "trial": 0, "path": "../../secret", "sha256": "0" * 64},
        {"event": "inputs", "seed": 0, "trial": 0, "path": "x", "sha256": "../../secret"},
    ]  # fmt: skip
    write_block(tmp_path, *forged, failed(seed=1))
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        (tally,) = ledger.tallies()
        assert (tally.failed, tally.n) == (1, 1)
        assert ledger.kept_inputs(tally.series) == []
        assert ledger.garbled_lines() == {"b1": len(forged)}


def test_an_archive_is_no_ledger_and_nothing_of_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "report.zip", "w") as archive:
        archive.writestr("../../pwned", "x")
        archive.writestr("ledger.sqlite", "x")
    with (
        Ledger.open(tmp_path / "mine" / "ledger.sqlite") as ledger,
        pytest.raises(ReproError, match="no ledger"),
    ):
        ledger.merge(tmp_path / "report.zip")
    assert not list(tmp_path.parent.glob("**/pwned"))


def test_a_ledger_runs_no_code_where_it_is_merged(tmp_path):
    """Neither a trigger of theirs, nor a module that is loaded, nor a file that is attached."""
    Ledger.open(tmp_path / "theirs.sqlite").close()
    db = sqlite3.connect(tmp_path / "theirs.sqlite")
    db.execute("CREATE TRIGGER pwned AFTER INSERT ON series BEGIN DELETE FROM trials; END")
    db.execute("INSERT INTO series VALUES (1, 'c', 'r', 't', 'seeds', '')")
    db.commit()
    db.close()
    write_block(tmp_path / "mine", failed(seed=1))
    with Ledger.open(tmp_path / "mine" / "ledger.sqlite") as ledger:
        ledger.merge(tmp_path / "theirs.sqlite")
        ledger.record_build("c", "d", ok=True, seconds=1.0)
        (tally,) = ledger.tallies()
        assert tally.n == 1
        names = ledger._db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        assert ("pwned",) not in names


@pytest.mark.parametrize(
    "requirement",
    [
        "--index-url=http://evil.example",
        "-r /etc/passwd",
        "-e .",
        "../wheel.whl",
        "/tmp/x.whl",
        "a b",
        "x\n--pre",
    ],
)
def test_a_requirement_is_no_option_and_no_path(tmp_path, requirement):
    """A wheel is named by its project, never by a file or an option of the installer."""
    path = tmp_path / "matrix.yaml"
    subject = {"path": ".", "test_file": "t.py", "test": "a", "requirements": [requirement]}
    path.write_text(json.dumps({"subject": subject, "profiles": {"a": {"python": "3.12", "torch": "2.8.0"}}}))
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].wrong.startswith("`requirements`")


def test_a_file_with_a_hole_is_read_up_to_a_limit(tmp_path, monkeypatch):
    """A terabyte that takes no room on the disk, but all of the reader's memory."""
    path = tmp_path / "records.jsonl"
    with path.open("wb") as file:
        file.truncate(2**40)
    monkeypatch.setattr(plain, "MOST", 2**20)
    assert len(plain.read_plain(path)) == 2**20
    assert list(read_sound_events(path)) == []


DEEP = ["-" * 100_000 + "1", "a" + ".b" * 100_000, "lambda: " * 50_000 + "1", "1" + "+1" * 100_000, "a\0b"]


@pytest.mark.parametrize("source", DEEP, ids=["minus", "attributes", "lambdas", "sum", "null"])
@pytest.mark.parametrize("name", ["setup.py", "op/__init__.py", "test_op.py", "conftest.py"])
def test_a_source_that_no_parser_can_read_breaks_nothing(tmp_path, source, name):
    """Nested without end: Python's own parser gives up with a MemoryError, or runs out of stack."""
    (tmp_path / "op").mkdir()
    for each, text in {"op/__init__.py": "", "test_op.py": "from op import x\ndef test_op(): pass\n"}.items():
        (tmp_path / each).write_text(text)
    (tmp_path / name).write_text(source if name != "test_op.py" else f"def test_op(): pass\n{source}")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "op"\ndynamic = ["version"]\n'
        '[tool.setuptools.dynamic]\nversion = {attr = "op.version"}\n'
    )
    spec = SubjectSpec(base=tmp_path, path=".", test_file="test_op.py", test="test_op")
    assert resolve(spec, state=tmp_path / "state").test == "test_op"
