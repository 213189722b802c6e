"""What a report says, as plain values; every number comes from trials that the ledger holds."""

from repro.report.model.anatomy import Agreement, Anatomy, Dimension, Element, Failure, Neighbour, Spread
from repro.report.model.diagnosis import Cause, Diagnosis, Verdict
from repro.report.model.rates import CellRate, Pair, Pairing
from repro.report.model.report import CellFacts, Proof, Report
from repro.report.model.search import Search, Tried

__all__ = [
    "Agreement",
    "Anatomy",
    "Cause",
    "CellFacts",
    "CellRate",
    "Diagnosis",
    "Dimension",
    "Element",
    "Failure",
    "Neighbour",
    "Pair",
    "Pairing",
    "Proof",
    "Report",
    "Search",
    "Spread",
    "Tried",
    "Verdict",
]
