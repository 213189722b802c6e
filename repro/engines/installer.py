"""Puts resolved packages into an environment of this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from repro.cells import Cell
from repro.engines import packages
from repro.engines.indexes import Indexes
from repro.engines.messages import build_failed
from repro.engines.process import run_logged


class Installer:
    """Puts exact pins into an environment: with uv, and with pip what uv cannot read."""

    def __init__(self, uv: str, python: Path, indexes: Indexes, log: Path, deadline: float) -> None:
        self._uv, self._python, self._indexes = uv, python, indexes
        self._log, self._deadline = log, deadline

    def install(self, cell: Cell, pins: Sequence[packages.Pin], *where: str) -> None:
        """Install pins without looking at what they depend on.

        Raises:
            BuildError: uv or pip failed or ran out of time.
        """
        by_pip = [pin for pin in pins if pin.wheel and packages.unreadable_by_uv(pin.wheel)]
        by_uv = [str(pin.wheel or pin.requirement) for pin in pins if pin not in by_pip]
        common = [self._uv, "pip", "install", "--python", str(self._python), "--no-config"]
        if by_uv:
            flags = ["--no-deps", "--compile-bytecode", *self._indexes.uv_flags(), *where]
            self._run(cell, [*common, *flags, *by_uv])
        if by_pip:
            self._run(cell, [*common, *self._indexes.uv_flags(), "pip"])
            pip = [str(self._python), "-m", "pip", "install", "--no-deps", "--no-index", *where]
            self._run(cell, [*pip, *(str(pin.wheel) for pin in by_pip)])

    def _run(self, cell: Cell, command: Sequence[str]) -> None:
        env = {**os.environ, **self._indexes.environment(), "NO_COLOR": "1"}
        left = max(1.0, self._deadline - time.monotonic())
        done = run_logged(command, log=self._log, timeout=left, env=env)
        if not done.ok:
            raise build_failed(cell, "the environment", done, self._log)
