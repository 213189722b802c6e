"""`python -m repro_trial request.json`: run one block in this process."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import sys
from pathlib import Path
from typing import List, TextIO

import pytest

from .altering.altered import install_constants
from .arguments import pytest_arguments
from .block import Block
from .comparing.comparisons import Comparisons
from .comparing.patches import install
from .kernels.compiled import disassemble_cache
from .probe import hooks as probe_hooks
from .records import Outcome
from .request import BadRequest, Request, read_request
from .seeding import Seeding
from .writer import RecordFile

_KEPT = 8000


class _Echo(io.TextIOBase):
    """Passes stderr on and keeps its end: what pytest says before it can call a plugin."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.text = ""

    def write(self, text: str) -> int:
        self.text = (self.text + text)[-_KEPT:]
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()


def run_block(request: Request) -> None:
    """Run one block in this process, which is changed by it: folder, path, imported modules."""
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    os.chdir(request.root)
    sys.path[:0] = [folder for folder in request.python_path if folder not in sys.path]
    seeding, comparisons = Seeding(), Comparisons()
    install(comparisons, lambda name: _loaded(name, request, seeding))
    install_constants(request.altered.constants, request.root, request.test_file)
    block = Block(request, RecordFile(request.records / "records.jsonl"), seeding, comparisons)
    if not request.test_file.is_file():
        block.write_cell()
        nearest = sorted(path.name for path in request.test_file.parent.glob("*test*.py"))[:8]
        message = f"no such file: {request.test_file.name}"
        block.write_missing("file", Outcome.TEST_MISSING, message, nearest=nearest)
        return
    echo = _Echo(sys.stderr)
    with contextlib.redirect_stderr(echo):
        pytest.main(pytest_arguments(request), plugins=[block])
    if request.altered.machine_code:
        disassemble_cache()
    if not block.began:
        block.write_cell()
        block.write_missing("configuration", Outcome.FAILED_OTHERWISE, block.internal_error or echo.text)


def _loaded(name: str, request: Request, seeding: Seeding) -> None:
    """A library was loaded: it is seeded, and where the request is for a probe, hooked."""
    if request.probe is not None:
        probe_hooks.loaded(name)
    seeding.loaded(name)


def main(arguments: List[str]) -> int:
    """Run the block that a request file describes; 2 where the request cannot be used."""
    if len(arguments) != 1:
        print("usage: python -m repro_trial REQUEST.json", file=sys.stderr)
        return 2
    faulthandler.enable()
    try:
        run_block(read_request(Path(arguments[0])))
    except BadRequest as error:
        print(f"bad request: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Everything is recorded by now: a subject's exit handlers and leftover threads are no trial's outcome.
    os._exit(status)
