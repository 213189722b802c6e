"""What must hold whatever bytes a parser is given; for property tests and for the fuzzer.

Each contract takes bytes and a folder of its own. An AssertionError, or an exception that is no
`ReproError`, is a fault of the kit.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from block_files import CELL, assert_tallies_are_true, end

from repro.adapting import read_adapted
from repro.cells import expand
from repro.cli.status import _row
from repro.config import ConfigError, load
from repro.diagnose.shots import read_shots
from repro.engines.base import Exit
from repro.errors import ExitCode, ReproError
from repro.inspect.records import read as read_probe
from repro.minimize.blocks import outcomes
from repro.report import gather, to_html, to_markdown
from repro.report.export import to_csv, to_junit
from repro.report.past import read_diagnosis, read_searches
from repro.run.settling import settle
from repro.store import Ledger
from repro.store.sound import read_sound_events

WHOLE_FILE = ("empty", "larger than", "cannot be read", "matrix.yaml has no", "not YAML")
"""How mistakes begin that no line is to blame for."""
REQUEST = {
    "cell": "torch2.9",
    "subject": "abc",
    "test": "test_op",
    "mode": "seeds",
    "seeds": [0, 1, 2, 3, 4, 5],
}


def matrix(data: bytes, folder: Path) -> None:
    """A matrix.yaml is read, or every mistake has a line and what would be right."""
    path = folder / "matrix.yaml"
    path.write_bytes(data)
    try:
        read = load(path)
    except ConfigError as error:
        for problem in error.problems:
            assert problem.line > 0 or problem.wrong.startswith(WHOLE_FILE), problem
            assert problem.line <= data.count(b"\n") + data.count(b"\r") + 1 + _odd_breaks(data), problem
            assert problem.right
            assert "\x1b" not in str(problem), "a terminal would obey it"
        return
    for name in read.profiles:
        ids = [cell.id for cell in expand(read, name).cells]
        assert len(set(ids)) == len(ids)


def _odd_breaks(data: bytes) -> int:
    """Line breaks that YAML knows beside these two."""
    text = data.decode("utf-8", "replace")
    return sum(text.count(each) for each in "\x85\u2028\u2029")


def block(data: bytes, folder: Path) -> None:
    """Lines that are no record are left out and counted; what is told of the others is what they say."""
    home = _home(folder)
    records = home / "blocks" / "b1" / "records.jsonl"
    records.parent.mkdir(parents=True)
    (records.parent / "request.json").write_text(json.dumps(REQUEST))
    records.write_bytes(data)
    error = _refused(lambda: _tell_all(home, data))
    assert error is None or error.next_step, "an error names the next command"


def _tell_all(home: Path, data: bytes) -> None:
    stated = _stated(data)
    with Ledger.open(home / "ledger.sqlite") as ledger:
        ledger.catch_up()
        assert_tallies_are_true(ledger)
        recorded = [(trial.seed, trial.outcome.value) for trial in ledger.trials(repeats=True)]
        assert [pair for pair in recorded if pair[1] != "TEST_MISSING" and pair not in stated] == []
        _report(ledger, home)


def _stated(data: bytes) -> list[tuple[object, object]]:
    """Seeds and outcomes that some line states; `missing` lines have none of their own."""
    found: list[tuple[object, object]] = []
    for line in data.split(b"\n")[:-1]:
        try:
            event = json.loads(line)
            kind = event["event"]
            found += [(event["seed"], event["outcome"])] if kind == "end" else []
            found += [(seed, event.get("outcome")) for seed in REQUEST["seeds"]] if kind == "missing" else []
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return found


def _report(ledger: Ledger, home: Path) -> None:
    tallies = ledger.tallies()
    for tally in tallies:
        _row(tally, ledger.failing_seeds(tally.series), {})
        ledger.kept_inputs(tally.series)
    to_csv(tallies)
    to_junit(tallies)
    if tallies:
        told = gather(ledger, home)
        to_markdown(told)
        page = to_html(told)
        assert "<script" not in page.lower()


def records(data: bytes, folder: Path) -> None:
    """What reads a block beside the ledger: searches, diagnosis, minimizing, looking inside."""
    path = _home(folder) / "records.jsonl"
    path.write_bytes(data)
    read_shots(path)
    read_probe(path)
    read_adapted(path, {1: 1})
    failed, passed, others = outcomes(list(read_sound_events(path)), "k")
    settled = settle(path, Exit(code=1), None)
    assert 0 <= settled.ended <= failed + passed + others.total() + 1


def request(data: bytes, folder: Path) -> None:
    """A request that cannot be read makes its block unreadable, with the reason."""
    home = _home(folder)
    asked = home / "blocks" / "b1" / "request.json"
    asked.parent.mkdir(parents=True)
    asked.write_bytes(data)
    events = [CELL, end(0, "PASSED"), end(1, "FAILED"), {"event": "missing"}]
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (asked.parent / "records.jsonl").write_text(lines)
    with Ledger.open(home / "ledger.sqlite") as ledger:
        came = ledger.ingest(asked.parent)
        assert came.problem or came.garbled or ledger.tallies()
        _report(ledger, home)


def ledger(data: bytes, folder: Path) -> None:
    """A ledger of any bytes is read, or refused with the next command; and so is one that is merged."""
    home = _home(folder)
    (home / "ledger.sqlite").write_bytes(data)
    other = folder / "other.sqlite"
    shutil.copy(home / "ledger.sqlite", other)
    _open_and_tell(home, None)
    fresh = _home(folder)
    _open_and_tell(fresh, other)


def _open_and_tell(home: Path, other: Path | None) -> None:
    def tell() -> None:
        with Ledger.open(home / "ledger.sqlite") as opened:
            if other is not None:
                opened.merge(other)
                assert_tallies_are_true(opened)
            _report(opened, home)

    error = _refused(tell)
    assert error is None or error.next_step, "an error names the next command"
    assert error is None or error.exit_code is not ExitCode.BUG, "the kit is not to blame"
    assert error is None or other is None or f"rm {home}" not in error.next_step, "the other is to blame"


def _refused(do: Callable[[], None]) -> ReproError | None:
    try:
        do()
    except ReproError as error:
        return error
    return None


def left(data: bytes, folder: Path) -> None:
    """What a search and a diagnosis left behind is shown, or left out."""
    home = _home(folder)
    (home / "searches").mkdir()
    (home / "searches" / "a.json").write_bytes(data)
    (home / "diagnosis.json").write_bytes(data)
    read_searches(home, "test_op")
    read_diagnosis(home, "test_op", "abc")


def _home(folder: Path) -> Path:
    home = folder / "state"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    return home


CONTRACTS: dict[str, Callable[[bytes, Path], None]] = {
    "matrix": matrix,
    "block": block,
    "records": records,
    "request": request,
    "ledger": ledger,
    "left": left,
}


# Inputs to begin from ----------------------------------------------------------------------------------


def examples(name: str, folder: Path) -> list[bytes]:
    """Good inputs of a contract, to be changed here and there."""
    root = Path(__file__).parents[3]
    real = [path.read_bytes() for path in sorted((Path(__file__).parent / "real_block").glob("*.jsonl"))]
    asked = (Path(__file__).parent / "real_block" / "request.json").read_bytes()
    if name == "ledger":
        return [_some_ledger(folder)]
    return {
        "matrix": [(root / "matrix.yaml").read_bytes()],
        "block": real,
        "records": real,
        "request": [asked, json.dumps(REQUEST).encode()],
        "left": [json.dumps(each).encode() for each in (SEARCH, DIAGNOSIS)],
    }[name]


def _some_ledger(folder: Path) -> bytes:
    home = folder / "example"
    block = home / "blocks" / "b1"
    block.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).parent / "real_block" / "records.jsonl", block)
    (block / "request.json").write_text(json.dumps(REQUEST))
    with Ledger.open(home / "ledger.sqlite") as made:
        made.catch_up()
    db = sqlite3.connect(home / "ledger.sqlite")
    db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    return (home / "ledger.sqlite").read_bytes()


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, left out, doubled, or taken for others that parsers trip over."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(changed) + 1)
        span = rng.choice((1, 1, 2, 8, 64))
        part = rng.choice((b"", bytes(changed[at : at + span]) * 2, rng.randbytes(span), rng.choice(TOKENS)))
        changed[at : at + (span if rng.random() < 0.7 else 0)] = part
    return bytes(changed)


TOKENS = (
    *(b"null", b"-1", b"1e400", b"NaN", b"Infinity", b"9" * 20, b'"nan"', b"[]", b"{}", b"[[]]"),
    *(b"true", b'"\\ud800"', b'"\\u001b[2J"', b'"<script>"', b"\n", b"\x00", b"\xff", b'"', b"{", b"}", b":"),
    *(b'"event": "end"', b'"event": "missing"', b'"outcome": "FAILED"', b"- ", b"&a ", b"*a", b"!!python/x"),
)  # fmt: skip
_RATE = {"failed": 3, "trials": 40, "rate": 0.075, "low": 0.02, "high": 0.2}
SEARCH = {
    "about": {"test": "test_op"},
    "answer": {
        "axis": "triton", "kind": "appears", "first_bad": "b", "low": "a", "high": "b", "confidence": 0.99,
        "rate_before": _RATE, "rate_after": _RATE, "candidates": 4, "oldest": "a", "newest": "d",
        "trials": 80, "builds": 3, "final": True, "link": "https://example.org", "method": "replay",
        "tried": [
                  {"candidate": "a", "label": "3.5.1", "failed": 0, "trials": 40, "replayed": {"trials": 2}},
                  {"candidate": "b", "label": "3.6.0", "failed": 3, "trials": 40}],
        "findings": [{"candidate": "c", "label": "3.7", "outcome": "BUILD_FAILED", "message": "no wheel"}],
        "belief": [{"low": "a", "high": "b", "probability": 0.9}], "notes": ["a note"],
    },
}  # fmt: skip
DIAGNOSIS = {
    "test": "test_op", "revision": "abc", "cell": "torch2.9", "predicted_rate": {"rate": 0.08},
    "causes": [{"name": "a race", "verdict": "ruled_out", "evidence": ["40 of 40"], "share": 1.0}],
    "minimized": {"B": 1}, "conclusion": "both right", "advice": ["keep away"], "experiments": [],
    "jumps": [{"distance_ulp": 1.0, "coordinate": 4.0, "place": 4.0}],
}  # fmt: skip
