"""Measures the comparisons of a running trial, passed or not, without a trace in the test."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .. import FOLDER
from .agreeing import agreement

_MOST = 200
_LIBRARIES = tuple(f"{os.sep}{name}{os.sep}" for name in ("torch", "numpy", "unittest", "_pytest"))

Measure = Callable[[Mapping[str, Any], bool], List[Dict[str, Any]]]
"""Takes the arguments by name and whether the comparison passed; gives one record per pair compared."""


Observer = Callable[[int, str, Mapping[str, Any], bool], None]
"""Takes a comparison's index, where it was called, its arguments by name, and whether it passed."""


@dataclass(frozen=True)
class Compared:
    """A function that compares.

    Args:
        name: how records call it.
        parameters: names of its positional parameters.
        defaults: the defaults that the measure needs.
        measure: what measures a call.
        predicate: whether it returns its verdict instead of raising.
    """

    name: str
    parameters: Tuple[str, ...]
    measure: Measure
    defaults: Mapping[str, Any] = field(default_factory=dict)
    predicate: bool = False

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Dict[str, Any]:
        """A call's arguments by name."""
        return {**self.defaults, **dict(zip(self.parameters, args)), **kwargs}  # noqa: B905


class Comparisons:
    """The comparisons of the trial that runs; at most `_MOST` are measured, the rest are counted."""

    def __init__(self) -> None:
        self._records: Optional[List[Dict[str, Any]]] = None
        self._count = 0
        self._failed: Optional[Tuple[int, Optional[BaseException]]] = None
        self._inside = False
        self._observer: Optional[Observer] = None
        self._settled: Sequence[bool] = ()
        self._verdicts: List[bool] = []  # of the trial that was observed last
        self.known: Dict[Tuple[int, int], Optional[Dict[str, Any]]] = {}
        """Numbers of the comparison that is being made, by its tensors' ids; None where they may differ."""

    @property
    def busy(self) -> bool:
        """Whether a comparison is being made or measured now."""
        return self._inside

    @contextlib.contextmanager
    def observed_by(self, observer: Observer) -> Iterator[None]:
        """Hand every comparison of the body on, while its tensors are at hand."""
        self._observer, self._verdicts = observer, []
        try:
            yield
        finally:
            self._observer = None

    @contextlib.contextmanager
    def passing_again(self) -> Iterator[None]:
        """Let comparisons of the body pass, unseen, where they passed in the run that was observed last.

        For a run with an input moved on one side: an earlier check of outputs would end it before it
        comes to what is looked for.
        """
        self._settled = self._verdicts
        try:
            yield
        finally:
            self._settled = ()

    def begin(self) -> None:
        """Measure from now on; a trial begins."""
        self._records, self._count, self._failed = [], 0, None

    def end(self) -> List[Dict[str, Any]]:
        """Stop measuring, and what was measured since `begin`."""
        if self._records is None:
            return []
        records, self._records = self._records, None
        if self._count > _MOST:
            records.append({"index": self._count - 1, "left_out": self._count - _MOST})
        return records

    def culprit(self, error: BaseException) -> Optional[int]:
        """Index of the comparison that `error` came from, or None.

        A predicate such as `torch.allclose` raises nothing itself: an AssertionError that follows its
        False, with no other comparison in between, is laid to it.
        """
        if self._failed is None:
            return None
        index, raised = self._failed
        self._failed = None  # the exception's frames may hold tensors
        if raised is None:
            return index if isinstance(error, AssertionError) and index == self._count - 1 else None
        return index if raised in (error, error.__cause__, error.__context__) else None

    def agree(self, torch: Any, actual: Any, expected: Any, atol: Any, rtol: Any) -> bool:
        """Whether two tensors under comparison are close beyond doubt; if so, their numbers are known."""
        if self._records is None or not self._inside or self._count >= _MOST:
            return False
        sides = id(actual), id(expected)
        if sides not in self.known:
            try:
                self.known[sides] = agreement(torch, actual, expected, atol, rtol)
            except Exception:  # whatever is wrong, the comparison itself shall say it
                self.known[sides] = None
        return self.known[sides] is not None

    def wrap(self, original: Callable[..., Any], compared: Compared) -> Callable[..., Any]:
        """The function, measured."""

        @functools.wraps(original)
        def measured(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if self._records is None or self._inside:
                return original(*args, **kwargs)
            if self._is_settled():
                return compared.predicate or None
            error: Optional[BaseException] = None
            result = None
            self._inside = True
            try:
                result = original(*args, **kwargs)
            except Exception as raised:
                error = raised
                raise
            finally:
                passed = error is None and (not compared.predicate or bool(result))
                self._note(compared, args, kwargs, passed, error)
                self._inside = False
                self.known.clear()
                del error
            return result

        return measured

    def _is_settled(self) -> bool:
        """Whether the comparison that begins passed before; it is counted, then."""
        settled = self._count < len(self._settled) and self._settled[self._count]
        self._count += settled
        return settled

    def _note(
        self,
        compared: Compared,
        args: Tuple[Any, ...],
        kwargs: Dict[str, Any],
        passed: bool,
        error: Optional[BaseException],
    ) -> None:
        index, self._count = self._count, self._count + 1
        if self._observer is not None:
            self._verdicts.append(passed)
        if not passed:
            self._failed = (index, error)
        if self._records is None or index >= _MOST:
            return
        common: Dict[str, Any] = {
            "index": index,
            "function": compared.name,
            "where": _where(),
            "passed": passed,
        }
        try:
            bound = compared.bind(args, kwargs)
            pairs = compared.measure(bound, passed)
            if self._observer is not None:
                self._observer(index, common["where"], bound, passed)
        except Exception as failure:  # a measurement never becomes the test's outcome
            pairs = [{"unmeasured": f"{type(failure).__name__}: {failure}"[:200]}]
        self._records.extend({**common, **pair} for pair in pairs[:_MOST])


@functools.lru_cache(maxsize=None)
def _is_library(file: str) -> bool:
    return file.startswith(FOLDER) or any(one in file for one in _LIBRARIES)


def _where() -> str:
    """File, function and line of the nearest caller that is no library."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not _is_library(code.co_filename):
            file = code.co_filename.rsplit(os.sep, 1)[-1]
            return f"{file}:{code.co_name}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return ""
