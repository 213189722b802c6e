"""Code under test: which code, which of its tests, and a read-only copy of it that trials see."""

from repro.subject.location import override
from repro.subject.repository import export, resolve_revision
from repro.subject.resolving import Subject, resolve

__all__ = ["Subject", "export", "override", "resolve", "resolve_revision"]
