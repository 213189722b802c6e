"""Notices a test that seeds generators itself: then trials with different seeds draw the same inputs."""

from __future__ import annotations

import random
import sys
from typing import Any, Dict, List, Optional, Set, Tuple

TRIALS = 8
"""Trials that are looked at; the first ones may have ended before the test came to its seed."""


class OwnSeeds:
    """Compares where the generators stand after trials that began with different seeds.

    A generator that nobody seeded anew stands elsewhere after each; one that stands at the same place after
    two of them was put there by the test, or by a fixture.
    """

    def __init__(self) -> None:
        self._seen: Dict[Tuple[str, Any], int] = {}
        self._found: Set[str] = set()
        self._left = TRIALS

    def look(self, seed: int) -> List[str]:
        """After a trial: the libraries that were found just now, such as `torch`."""
        if not self._left:
            return []
        self._left -= 1
        new = []
        for library, mark in _marks().items():
            if self._seen.setdefault((library, mark), seed) != seed and library not in self._found:
                self._found.add(library)
                new.append(library)
        return new


def _marks() -> Dict[str, Any]:
    """Something that tells one state of each library's generator from another."""
    marks: Dict[str, Any] = {"random": hash(random.getstate())}
    key = _numpy_key()
    if key is not None:
        marks["numpy"] = key
    if "torch" in sys.modules:
        # The seed alone: a test that draws another number of times each trial is found, too.
        marks["torch"] = sys.modules["torch"].default_generator.initial_seed()
    return marks


def _numpy_key() -> Optional[int]:
    """Of numpy's global generator, unless the test put one of another kind in its place."""
    if "numpy" not in sys.modules:
        return None
    numpy: Any = sys.modules["numpy"]
    state = numpy.random.get_state(legacy=False)["state"]
    return hash((state["key"].tobytes(), state["pos"])) if "key" in state and "pos" in state else None
