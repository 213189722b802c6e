"""Puts resolved packages into an environment of this machine."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from repro.cells import Cell
from repro.engines.indexes import Indexes
from repro.engines.messages import build_failed
from repro.engines.process import run_logged
from repro.engines.resolver import Pin
from repro.engines.wheels import readable


class Installer:
    """Puts exact pins into an environment with uv."""

    def __init__(self, uv: str, python: Path, indexes: Indexes, log: Path, deadline: float) -> None:
        self._uv, self._python, self._indexes = uv, python, indexes
        self._log, self._deadline = log, deadline

    def install(self, cell: Cell, pins: Sequence[Pin], *where: str) -> None:
        """Install pins without looking at what they depend on.

        Raises:
            BuildError: uv failed or ran out of time.
        """
        if not pins:
            return
        with tempfile.TemporaryDirectory(prefix="repro-wheels-") as folder:
            wanted = [_source(pin, Path(folder)) for pin in pins]
            command = [self._uv, "pip", "install", "--python", str(self._python), "--no-config", "--no-deps"]
            command += ["--compile-bytecode", *self._indexes.uv_flags(), *where, *wanted]
            env = {**os.environ, **self._indexes.environment(), "NO_COLOR": "1"}
            left = max(0.1, self._deadline - time.monotonic())
            done = run_logged(command, log=self._log, timeout=left, env=env)
        if not done.ok:
            raise build_failed(cell, "the environment", done, self._log)


def _source(pin: Pin, folder: Path) -> str:
    return str(readable(pin.wheel, folder)) if pin.wheel else pin.requirement
