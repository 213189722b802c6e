"""A block folder: what was asked of it, and the lines of its file beyond the last look."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from repro.trial.plain import open_plain
from repro.trial.records import Mode
from repro.ui import shown

BATCH = 2000
"""Lines that go into the ledger in one transaction."""

LONGEST = 2**24
"""Bytes of a line that may be a record; a trial writes some kilobytes."""

_INTEGERS = range(-(2**63), 2**63)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a block was asked to do, from its request.json."""

    cell: str
    revision: str
    test: str
    mode: Mode
    gpu: str
    seeds: list[int]
    first_trial: int

    @property
    def digest(self) -> str:
        """Of what the block is about: unchanged when the block goes on in a further process."""
        about = json.dumps([self.cell, self.revision, self.test, self.mode.value])
        return hashlib.sha256(about.encode()).hexdigest()[:16]

    def trial_at(self, number: int) -> tuple[int, int]:
        """Seed and repetition of the trial with this number, or of the block's last one if it is none.

        Raises:
            ValueError: when the block has no seeds.
        """
        if not self.seeds:
            raise ValueError("a block without seeds")
        index = min(max(number - self.first_trial, 0), len(self.seeds) - 1)
        return self.seeds[index], self.repetition(self.first_trial + index)

    def repetition(self, number: int) -> int:
        """What tells apart trials of the same seed: their number, where the mode repeats a seed."""
        return number if self.mode.repeats else 0

    def trial_of(self, event: Mapping[str, Any]) -> tuple[int, int]:
        """Seed and repetition of the trial that an event is about.

        Raises:
            ValueError: when the block was not asked for it: the code under test can write to the file, too.
        """
        seed = whole(event["seed"])
        if seed not in self._asked:
            raise ValueError(f"seed {seed} was not asked for")
        if not self.mode.repeats:
            return seed, 0
        number = whole(event["trial"])
        if not 0 <= number - self.first_trial < len(self.seeds):
            raise ValueError(f"trial {number} was not asked for")
        return seed, number

    @cached_property
    def _asked(self) -> frozenset[int]:
        """The seeds, to look one up for each line."""
        return frozenset(self.seeds)


def read_request(folder: Path) -> tuple[Request | None, str]:
    """What the block was asked to do, and why that cannot be told ("" if it can)."""
    path = folder / "request.json"
    try:
        with open_plain(path) as file:
            asked = json.loads(file.read())
        request = Request(
            cell=text(asked["cell"]),
            revision=text(asked["subject"]),
            test=text(asked["test"]),
            mode=Mode(asked.get("mode") or Mode.SEEDS),
            gpu=gpu_model(asked.get("gpu_model")),
            seeds=[whole(seed) for seed in asked.get("seeds", ())],
            first_trial=whole(asked.get("first_trial", 0)),
        )
    except FileNotFoundError:
        return None, f"{path} is not there"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return None, f"{path} is no request: {error!r}"
    return request, ""


def whole_lines(path: Path, offset: int) -> list[bytes]:
    """Up to `BATCH` lines from a byte offset on. A last line without its end is still being written.

    A line of more than `LONGEST` bytes comes in pieces, none of which is a record.
    """
    lines: list[bytes] = []
    with open_plain(path) as file:
        file.seek(offset)
        while len(lines) < BATCH and (line := file.readline(LONGEST)):
            if not line.endswith(b"\n") and len(line) < LONGEST:
                break
            lines.append(line)
    return lines


def whole(value: Any) -> int:
    """A whole number that a database can hold.

    Raises:
        ValueError: when it is something else.
    """
    if type(value) is not int or value not in _INTEGERS:
        raise ValueError(f"no whole number that a database can hold: {value!r}")
    return value


def text(value: Any) -> str:
    """Text that a database can hold, half of a surrogate pair is none; and that no terminal obeys."""
    return shown(str(value or "").encode("utf-8", "replace").decode("utf-8"))


def gpu_model(gpu: Any) -> str:
    """The model's name, from a name, from facts about one GPU, or from a list of these."""
    if isinstance(gpu, list):
        gpu = gpu[0] if gpu else ""
    if isinstance(gpu, dict):
        gpu = gpu.get("name")
    return text(gpu) if isinstance(gpu, str) else ""
