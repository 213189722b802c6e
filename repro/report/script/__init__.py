"""A script that shows the failure without pytest, run in a cell before it is printed."""

from repro.report.script.prove import prove

__all__ = ["prove"]
