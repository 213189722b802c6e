"""Keeps the random inputs of a failing test in a file, and reads them back for a replay."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import sys
from pathlib import Path
from typing import Any, ContextManager, Dict, List, Optional, Set, Tuple

from .draws import MOST_BYTES, Draws, generator_states, restore_states, same_sequence

_SCHEMA = 1
_DESCRIBED = 200


class Replay:
    """A file of kept inputs, given to each trial in place of its own draws."""

    def __init__(self, path: Path) -> None:
        self.torch = importlib.import_module("torch")
        self._kept = self.torch.load(path, map_location="cpu", weights_only=True)
        self._draws = self.fresh()

    def fresh(self) -> Draws:
        """The draws, from the first one on."""
        return Draws(self.torch, self._kept["tensors"])

    def context(self) -> ContextManager[Any]:
        """A context in which one trial gets the kept inputs. Enter it when the generators are seeded."""
        restore_states(self._kept["states"])
        self._draws = self.fresh()
        mode: ContextManager[Any] = self._draws.mode()
        return mode

    @property
    def seed(self) -> int:
        """The seed that the inputs came from, for whatever a test draws beside them."""
        return int(self._kept["seed"])

    @property
    def tensors(self) -> List[Any]:
        """What was drawn, in order."""
        return list(self._kept["tensors"])

    @property
    def states(self) -> Dict[str, Any]:
        """Of Python's and numpy's generators, before the first draw."""
        return dict(self._kept["states"])

    def misses(self, *, passed: bool) -> bool:
        """Whether the last trial drew other shapes or types than those that were kept.

        A trial that failed may have come no further than the first of them.
        """
        ours, kept = self._draws.described, self._kept["draws"]
        return not same_sequence(ours, kept if passed else kept[: len(ours)])


class Keeper:
    """Records one run at a time, and saves it."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most
        self._seeds: Set[int] = set()

    def wants(self, seed: int) -> bool:
        """Whether this failing seed shall run again under recording."""
        return len(self._seeds) < self._most and seed not in self._seeds

    def recording(self, seed: int) -> Tuple[Optional[Draws], Dict[str, Any], ContextManager[Any]]:
        """Draws to come, the generators' states, and the context to run in. Call it after seeding."""
        self._seeds.add(seed)
        if "torch" not in sys.modules:
            return None, {}, contextlib.nullcontext()
        draws = Draws(sys.modules["torch"])
        return draws, generator_states(), draws.mode()

    def save(self, seed: int, draws: Optional[Draws], states: Dict[str, Any]) -> Dict[str, Any]:
        """Save what was drawn; the fields of the `inputs` line. Without a `path`, `reason` says why."""
        if draws is None:
            return {"path": None, "reason": "torch is not loaded: the seed alone gives the inputs"}
        fields: Dict[str, Any] = {"draws": draws.described[:_DESCRIBED], "drawn": len(draws.described)}
        if draws.too_large:
            return {**fields, "path": None, "reason": f"more than {MOST_BYTES} bytes were drawn"}
        torch: Any = sys.modules["torch"]
        content = {"schema": _SCHEMA, "tensors": draws.tensors, "draws": draws.described, "states": states}
        path = self._folder / f"seed{seed}.pt"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save({**content, "seed": seed}, path)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except (OSError, RuntimeError) as error:
            return {**fields, "path": None, "reason": f"{type(error).__name__}: {error}"[:200]}
        relative = f"{self._folder.name}/{path.name}"
        return {**fields, "path": relative, "sha256": digest, "bytes": path.stat().st_size}


def mismatches(compared: List[Dict[str, Any]]) -> List[Tuple[int, str, int, Optional[str]]]:
    """Which elements of which comparison were not close; equal for two runs that failed at the same ones."""
    return [
        (one["index"], one.get("item", ""), one["mismatched"], one.get("mismatched_at"))
        for one in compared
        if one.get("mismatched")
    ]
