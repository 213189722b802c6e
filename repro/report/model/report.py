"""The report as a whole: its parts, the script that proves it, where it was seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from repro.report.model.anatomy import Anatomy
from repro.report.model.diagnosis import Diagnosis
from repro.report.model.rates import CellRate, Pairing
from repro.report.model.search import Search
from repro.trial.records import Mode


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The standalone script, and what came of running it.

    Args:
        script: its text; "" where none could be written.
        cell: that it ran in.
        gpu: model of the GPU that it ran on, or "".
        status: its exit status.
        printed: what it wrote.
        seconds: wall time.
        refused: why there is no script that has shown the failure, or "".
    """

    script: str = ""
    cell: str = ""
    gpu: str = ""
    status: int | None = None
    printed: str = ""
    seconds: float = 0.0
    refused: str = ""

    @property
    def shown(self) -> bool:
        """Whether the script ran and the failure showed as promised."""
        return bool(self.script) and self.status == 1 and not self.refused


@dataclass(frozen=True, kw_only=True)
class CellFacts:
    """What a cell's process really imported, and where it ran."""

    cell: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it.

    Args:
        test: pytest's name of the target test.
        revision: of the subject.
        origin: where the subject came from, or "".
        rates: trials with seeds of their own in one process; the rate that is meant without further words.
        other_rates: of other modes, never mixed with those.
        elsewhere: other tests and revisions in the ledger, a line each.
        digests: of the cells' images or environments.
        notes: what a reader must know, a sentence each.
    """

    test: str
    revision: str
    origin: str = ""
    rates: Sequence[CellRate] = ()
    other_rates: Sequence[CellRate] = ()
    pairing: Pairing = field(default_factory=Pairing)
    anatomy: Anatomy = field(default_factory=Anatomy)
    searches: Sequence[Search] = ()
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    proof: Proof = field(default_factory=Proof)
    environments: Sequence[CellFacts] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Sequence[str] = ()
    notes: Sequence[str] = ()
    kit: str = ""

    @property
    def gpus(self) -> list[str]:
        """GPU models, "" for the CPU, in order."""
        return sorted({row.series.gpu for row in self.rates})

    @property
    def main_rates(self) -> Sequence[CellRate]:
        """The rates that the title is about: of seeds in one process, else of the next mode that ran."""
        for mode in (Mode.SEEDS, Mode.FRESH, Mode.REPEAT, Mode.REPLAY):
            rows = [
                row for row in (*self.rates, *self.other_rates) if row.series.mode is mode and row.rate.trials
            ]
            if rows:
                return rows
        return self.rates
