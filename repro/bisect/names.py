"""Follows a test over its names: it may have been renamed, or its parameters may have changed."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from repro.engines.base import Prepared
from repro.run import Target
from repro.trial.selection import matching_glob, short_id

List = Callable[[Target, Prepared], list[str]]
"""Every test of a target's test file, as pytest collects them there."""


@dataclass(kw_only=True)
class TestNames:
    """The names that a test had.

    Args:
        earlier: names or globs, tried in order where the test itself is not there.
        tests: collects the tests of a target; takes a process.
    """

    __test__ = False

    earlier: Sequence[str]
    tests: List
    _known: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def follow(self, target: Target, prepared: Prepared) -> Target:
        """The target with the name that its test has there; unchanged where it has none of them."""
        ids = self._ids(target, prepared)
        for name in (target.subject.test, *self.earlier):
            found = matching_glob(name, ids)
            if len(found) == 1:
                return replace(target, subject=replace(target.subject, test=short_id(found[0])))
        return target

    def _ids(self, target: Target, prepared: Prepared) -> list[str]:
        key = (target.cell.id, target.subject.revision)
        with self._lock:
            if key not in self._known:
                self._known[key] = self.tests(target, prepared)
            return self._known[key]


def base_name(test: str) -> str:
    """A test's name without its parameters."""
    return re.split(r"\[", test, maxsplit=1)[0]
