"""What to tell of a test that seeds generators itself: its trials differ less than their seeds say."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from repro.store import Ledger
from repro.store.sound import read_sound_events
from repro.trial.records import Event, Mode

_BLOCKS = 3
"""Blocks that are looked at, the newest ones: one of a single trial tells nothing."""


def own_seeds(ledger: Ledger, state: Path, *, cell: str, revision: str, test: str) -> str:
    """A sentence about the libraries that a test, or a fixture of it, seeds in each trial; "" for none.

    Args:
        ledger: knows the test's blocks.
        state: the run's folder, with the evidence in `blocks/`.
    """
    names = ledger.block_names(cell=cell, revision=revision, test=test, mode=Mode.SEEDS)
    files = (state / "blocks" / name / "records.jsonl" for name in islice(names, _BLOCKS))
    libraries: dict[str, None] = {}
    for file in files:
        for event in read_sound_events(file):
            if event["event"] == Event.OWN_SEEDS:
                libraries.update(dict.fromkeys(event["libraries"]))
    if not libraries:
        return ""
    named = " and ".join(libraries)
    return (
        f"the test, or a fixture of it, seeds {named} itself: what it draws from there is the same"
        " in every trial, so these are repetitions of one case; take its seed out to see others"
    )
