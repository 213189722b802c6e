"""Gives every generator that a test can draw from the seed of its trial."""

from __future__ import annotations

import random
import sys
from typing import Any, List, Optional


class Seeding:
    """Seeds Python's, numpy's and torch's generators; PYTHONHASHSEED is fixed before a process starts."""

    def __init__(self) -> None:
        self._seed: Optional[int] = None
        self._devices: Optional[List[Any]] = None

    def seed(self, seed: int) -> None:
        """Seed all generators of the modules that are loaded by now."""
        self._seed = seed
        random.seed(seed)
        if "numpy" in sys.modules:
            self._seed_numpy(seed)
        if "torch" in sys.modules:
            self._seed_torch(seed)

    def loaded(self, name: str) -> None:
        """Seed a library that a test loaded in the midst of its trial."""
        if self._seed is None:
            return
        if name == "numpy":
            self._seed_numpy(self._seed)
        elif name == "torch":
            self._seed_torch(self._seed)

    @staticmethod
    def _seed_numpy(seed: int) -> None:
        numpy: Any = sys.modules["numpy"]
        numpy.random.seed(seed % 2**32)

    def _seed_torch(self, seed: int) -> None:
        torch: Any = sys.modules["torch"]
        if self._devices is None:
            names = ("cuda", "xpu")
            modules = [getattr(torch, name, None) for name in names]
            self._devices = [module for module in modules if module is not None and module.is_available()]
        # torch.manual_seed would format a stack trace for each device library that is not there.
        torch.default_generator.manual_seed(seed)
        for module in self._devices:
            module.manual_seed_all(seed)
