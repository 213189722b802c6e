"""The ledger: every trial that ever ran here, in one SQLite file made from the block files.

    with Ledger.open(Path(".repro/ledger.sqlite")) as ledger:
        ledger.catch_up()
        for tally in ledger.tallies(test="test_op.py::test_backward"):
            print(tally.series.cell, tally.failed, tally.n)

A block file is the evidence and the ledger its index: deleting the ledger loses nothing.
"""

from repro.store.aside import set_aside
from repro.store.ledger import Ledger
from repro.store.model import (
    Build,
    Environment,
    Ingested,
    KeptInputs,
    Running,
    Series,
    Tally,
    Trial,
)

__all__ = [
    "Build",
    "Environment",
    "Ingested",
    "KeptInputs",
    "Ledger",
    "Running",
    "Series",
    "Tally",
    "Trial",
    "set_aside",
]
