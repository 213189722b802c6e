"""Stops in a debugger where a trial fails: at the line of the test file, with its tensors at hand."""

from __future__ import annotations

import contextlib
import pdb
import sys
from types import FrameType, TracebackType
from typing import Any, Dict, Iterator, List, Optional, TextIO, Tuple

import pytest

from .classify import text_of
from .request import Request
from .signature import Places
from .writer import clean

_MESSAGE = 2000


class Debugger:
    """A pytest plugin that opens pdb on the first exception of a trial, before anything is torn down.

    Args:
        request: whose commands are given to pdb; without any, it reads the terminal.
        places: tells the test file's frames from others.
        config: pytest's.
    """

    def __init__(self, request: Request, places: Places, config: Any) -> None:
        self._request = request
        self._places = places
        self._capture = config.pluginmanager.getplugin("capturemanager")

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        """A phase of a trial raised."""
        if isinstance(report, pytest.CollectReport):
            return
        error = call.excinfo.value
        with self._terminal() as (source, sink):
            session = _At(self._places, list(self._request.debug or ()), source, sink)
            print(f"{type(error).__name__} in {call.when}: {clean(text_of(error), _MESSAGE)}", file=sink)
            session.reset()
            session.interaction(None, error.__traceback__)

    @contextlib.contextmanager
    def _terminal(self) -> Iterator[Tuple[Optional[TextIO], TextIO]]:
        """Where commands come from, None for the terminal, and where the answers go."""
        if self._request.debug:
            with (self._request.records / "debug.txt").open("a", encoding="utf-8") as sink:
                yield None, sink
            return
        if self._capture is not None:
            self._capture.suspend(in_=True)
        try:
            yield sys.stdin, sys.stdout
        finally:
            if self._capture is not None:
                self._capture.resume()


class _At(pdb.Pdb):
    """pdb after the fact, at the innermost frame of the test file.

    Args:
        places: tells that frame.
        commands: given first; where there are some, no others are read.
        source: where commands are read.
        sink: where answers go.
    """

    def __init__(self, places: Places, commands: List[str], source: Optional[TextIO], sink: TextIO) -> None:
        typed = source is not None and source.isatty()  # then pdb reads lines that can be edited
        terminal: Dict[str, Any] = {} if typed else {"stdin": source, "stdout": sink}
        super().__init__(nosigint=True, readrc=False, **terminal)
        self._places = places
        self._given = bool(commands)
        if commands:
            self.cmdqueue = [*commands, "quit"]

    def setup(self, f: Optional[FrameType], tb: Optional[TracebackType]) -> None:
        """Begin in the test file, wherever the exception itself was raised; `down` leads there."""
        super().setup(f, tb)
        for place in reversed(range(len(self.stack))):
            frame = self.stack[place][0]
            if self._places.in_test(frame.f_code.co_filename):
                self.curindex, self.curframe = place, frame
                with contextlib.suppress(AttributeError):  # newer Pythons ask the frame itself
                    self.curframe_locals = frame.f_locals
                return

    def precmd(self, line: str) -> str:
        """Show a command that was given where nobody typed it."""
        if self._given:
            print(f"{self.prompt}{line}", file=self.stdout)
        return str(super().precmd(line))
