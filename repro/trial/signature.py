"""What a failure is recognised by: its exception, its place in the test, and which comparison it was."""

from __future__ import annotations

import linecache
import site
import sys
import sysconfig
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, Optional, Tuple

from . import FOLDER

_SOURCE = 200

Frame = Tuple[str, str, int]
"""File, function, line."""


class Places:
    """Tells the frames of the subject from those of libraries."""

    def __init__(self, test_file: Path, root: Path) -> None:
        self._test_file = str(test_file.resolve())
        self._root = f"{root.resolve()}/"
        prefixes = [sys.prefix, sys.base_prefix, *site.getsitepackages(), *sysconfig.get_paths().values()]
        self._libraries = tuple(f"{prefix}/" for prefix in {str(Path(one)) for one in prefixes})
        self._resolved: Dict[str, str] = {}

    def best(self, frames: List[Frame]) -> Optional[Frame]:
        """The innermost frame of the test file, else of the subject, else of anything but this plugin."""
        inner = [frame for frame in reversed(frames) if not frame[0].startswith(FOLDER)]
        for wanted in (self.in_test, self.in_subject, lambda _: True):
            for frame in inner:
                if wanted(frame[0]):
                    return frame
        return None

    def in_test(self, file: str) -> bool:
        """Whether a code object's file is the test file."""
        return self._resolve(file) == self._test_file

    def in_subject(self, file: str) -> bool:
        """Whether a code object's file belongs to the code under test rather than to a library."""
        path = self._resolve(file)
        return path == self._test_file or (
            path.startswith(self._root) and not path.startswith(self._libraries)
        )

    def _resolve(self, file: str) -> str:
        if file not in self._resolved:
            self._resolved[file] = str(Path(file).resolve()) if file[:1] != "<" else file
        return self._resolved[file]


def signature(error: BaseException, places: Places, comparison: Optional[int]) -> Dict[str, Any]:
    """Describe where an error was raised.

    `key` stays the same when lines move: it names the exception, the function, and the comparison or, where
    no comparison failed, the source line's text.
    """
    file, function, line = places.best(frames_of(error.__traceback__)) or ("", "", 0)
    source = linecache.getline(file, line).strip()[:_SOURCE]
    exception = type(error).__name__
    at = f"comparison {comparison}" if comparison is not None else source
    return {
        "exception": exception,
        "file": Path(file).name,
        "function": function,
        "line": line,
        "source": source,
        "comparison": comparison,
        "key": f"{exception} in {function or '?'}: {at}",
    }


def frames_of(trace: Optional[TracebackType]) -> List[Frame]:
    """The frames of a traceback, outermost first."""
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append((code.co_filename, code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    return frames
