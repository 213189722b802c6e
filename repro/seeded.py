"""What to tell of a test that seeds generators itself: its trials differ less than their seeds say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro.store import Ledger
from repro.store.sound import read_sound_events
from repro.trial.own_seeds import TRIALS
from repro.trial.records import Event, Mode

_BLOCKS = 3
"""Blocks that are looked at, the newest ones: one of a single trial tells nothing."""


def own_seeds(ledger: Ledger, state: Path, *, cell: str, revision: str, test: str) -> str:
    """A sentence about the libraries that a test, or a fixture of it, seeds in each trial; "" for none.

    Args:
        ledger: knows the test's blocks.
        state: the run's folder, with the evidence in `blocks/`.
    """
    names = ledger.newest_blocks(_BLOCKS, cell=cell, revision=revision, test=test, mode=Mode.SEEDS)
    libraries: dict[str, None] = {}
    for name in names:
        for event in _looked_at(state / "blocks" / name / "records.jsonl"):
            if event["event"] == Event.OWN_SEEDS:
                libraries.update(dict.fromkeys(event["libraries"]))
    if not libraries:
        return ""
    named = " and ".join(libraries)
    return (
        f"the test, or a fixture of it, seeds {named} itself: what it draws from there is the same"
        " in every trial, so these are repetitions of one case; take its seed out to see others"
    )


def _looked_at(file: Path) -> Iterator[dict[str, Any]]:
    """The events up to the last trial that was looked at for this, not all that a long block holds."""
    left = TRIALS
    for event in read_sound_events(file):
        left -= event["event"] == Event.START
        if left < 0:
            return
        yield event
