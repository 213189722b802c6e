"""The kit under load; see docs/load.md."""
