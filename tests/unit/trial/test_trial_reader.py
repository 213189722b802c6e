"""Block files survive a cut at any byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.trial.reader import Follower, read_events
from repro.trial.records import Event
from repro.trial.writer import RecordFile, clean

EVENTS = [{"event": "start", "trial": i, "seed": -i, "note": "é\n{" * i} for i in range(6)]
DATA = b"".join(json.dumps(event).encode() + b"\n" for event in EVENTS)


@given(cut=st.integers(0, len(DATA)))
def test_a_cut_costs_the_last_line_alone(tmp_path_factory, cut):
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    path.write_bytes(DATA[:cut])
    garbled = []
    found = list(read_events(path, on_garbled=lambda number, text: garbled.append(number)))
    whole = DATA[:cut].count(b"\n")
    assert found in (EVENTS[:whole], EVENTS[: whole + 1])
    assert not garbled
    RecordFile(path).write(Event.BLOCK_END)
    assert list(read_events(path)) == [*found, {"event": "block_end"}]


@given(noise=st.binary(max_size=60), at=st.integers(0, len(EVENTS)))
def test_garbled_lines_are_passed_over(tmp_path_factory, noise, at):
    path = tmp_path_factory.getbasetemp() / "noise.jsonl"
    lines = DATA.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:at], noise.replace(b"\n", b" ") + b"\n", *lines[at:]]))
    assert list(read_events(path)) == EVENTS


def test_garbled_lines_are_named(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'\n[1]\n\xff{"event": 3}\n' + DATA)
    garbled = []
    assert list(read_events(path, on_garbled=lambda *line: garbled.append(line))) == EVENTS
    assert [number for number, _text in garbled] == [2, 3]


def test_an_absent_file_has_no_events(tmp_path):
    assert list(read_events(tmp_path / "none")) == []
    assert Follower(tmp_path / "none").poll() == []


def test_a_growing_file_is_followed(tmp_path):
    path = tmp_path / "records.jsonl"
    follower, found = Follower(path), []
    for end in range(0, len(DATA) + 7, 7):
        path.write_bytes(DATA[:end])
        found += follower.poll()
    assert found == EVENTS


def test_lines_are_strict_json(tmp_path):
    path = tmp_path / "records.jsonl"
    RecordFile(path).write(Event.END, worst=[float("nan"), float("-inf"), 0.1], half="\ud800")
    line = path.read_text()
    assert json.loads(line, parse_constant=pytest.fail)["worst"] == ["nan", "-inf", 0.1]


def test_text_is_cleaned_and_cut():
    assert clean("\x1b[1;31mred\x1b]0;title\x07\x1b[0m\x00\tab\r\n", 100) == "red\tab\n"
    assert clean("abcdef", 3) == "abc[...]"
    assert clean("abcdef", 3, keep_end=True) == "[...]def"
