"""A look inside one trial: its steps, its precision, its derivatives, for one cell or two side by side."""

from repro.inspect.probing import Wanted, probe
from repro.inspect.records import (
    Begin,
    Derivative,
    End,
    Gradcheck,
    Precision,
    Probe,
    Quotient,
    Rounding,
    Step,
    read,
)

__all__ = [
    "Begin",
    "Derivative",
    "End",
    "Gradcheck",
    "Precision",
    "Probe",
    "Quotient",
    "Rounding",
    "Step",
    "Wanted",
    "probe",
    "read",
]
