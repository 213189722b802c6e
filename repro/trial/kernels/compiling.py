"""Trials under Triton's interpreter whose kernels are then compiled for a GPU that is not here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from ..inputs.kept import Replay
from ..protocol import Protocol, Ran
from ..records import Event
from ..trials import Compared, Trials
from .launches import Launches, Note, noted_in

_KEPT = 500


class Compiling(Trials):
    """Trials of which each new launch is compiled; a line for each says what came of it."""

    def _run(self, protocol: Protocol, replay: Optional[Replay], *inside: Any) -> Tuple[Ran, Compared]:
        launches = Launches()
        with noted_in(launches):
            ran = super()._run(protocol, replay, *inside)
        if notes := launches.take():
            self._compile(notes)
        return ran

    def _compile(self, notes: List[Note]) -> None:
        """Compile launches in a process of its own, one after the other."""
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as said:
            file = Path(folder) / "launches.json"
            file.write_text(json.dumps(notes), encoding="utf-8")
            with subprocess.Popen(
                self._command(file), env=environment(), stdout=subprocess.PIPE, stderr=said, text=True
            ) as process:
                assert process.stdout is not None
                told = [self._told(line) for line in process.stdout]
            said.seek(0)
            died = f"the compiler ended with {process.returncode}: {said.read().strip()[-_KEPT:]}"
        for note in notes[len(told) :]:
            self._records.write(Event.COMPILED, kernel=note["kernel"], why=died)

    def _command(self, file: Path) -> List[str]:
        package = __name__.rpartition(".")[0]
        return [sys.executable, "-m", f"{package}.offline", str(file), str(self._request.altered.compile_for)]

    def _told(self, line: str) -> Dict[str, Any]:
        told: Dict[str, Any] = json.loads(line)
        self._records.write(Event.COMPILED, **told)
        return told


def environment() -> Dict[str, str]:
    """This process's, with its path, and without the interpreter."""
    return {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
