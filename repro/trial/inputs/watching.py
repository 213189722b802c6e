"""Notes what a test draws at random, number by number, so that failing trials can be told by it."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import sys
from typing import Any, Callable, Dict, Iterator, List

from .. import FOLDER
from ..dispatching import dispatching, name_of
from .draws import RANDOM

_MOST = 500
_TEXT = 80
_PYTHON = (
    *("random", "uniform", "randint", "randrange", "choice", "choices", "sample", "shuffle", "getrandbits"),
    *("gauss", "normalvariate", "triangular", "betavariate", "expovariate", "gammavariate", "lognormvariate"),
    *("vonmisesvariate", "paretovariate", "weibullvariate", "randbytes"),
)
_NUMPY = (
    *(
        "rand",
        "randn",
        "randint",
        "random",
        "random_sample",
        "uniform",
        "normal",
        "choice",
        "standard_normal",
    ),
    *("integers", "permutation", "exponential", "poisson", "binomial", "beta", "gamma", "shuffle"),
)
_LIBRARIES = (f"{os.sep}torch{os.sep}", f"{os.sep}numpy{os.sep}", f"{os.sep}random.py")

Drawn = List[Dict[str, Any]]


class Watch:
    """The draws of one trial, in order; at most `_MOST`."""

    def __init__(self) -> None:
        self.drawn: Drawn = []

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Note what the test draws from Python's, numpy's and torch's global generators."""
        self.drawn = []
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._module(random, _PYTHON, "random"))
            numpy: Any = sys.modules.get("numpy")
            if numpy is not None:
                stack.enter_context(self._module(numpy.random, _NUMPY, "numpy.random"))
            if "torch" in sys.modules:
                stack.enter_context(self._torch())
            yield

    @contextlib.contextmanager
    def _module(self, module: Any, names: Any, prefix: str) -> Iterator[None]:
        originals = {name: getattr(module, name) for name in names if hasattr(module, name)}
        for name, original in originals.items():
            setattr(module, name, self._noting(f"{prefix}.{name}", original))
        try:
            yield
        finally:
            for name, original in originals.items():
                setattr(module, name, original)

    def _noting(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def noting(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._note(name, args[0] if result is None and args else result)
            return result

        return noting

    def _torch(self) -> Any:
        def watched(func: Any, args: Any, kwargs: Dict[str, Any]) -> Any:
            result, name = func(*args, **kwargs), name_of(func)
            if name in RANDOM:
                self._note(f"torch.{name}", result)
            return result

        return dispatching(watched)

    def _note(self, name: str, value: Any) -> None:
        if len(self.drawn) < _MOST:
            self.drawn.append({"function": name, "where": _where(), **_described(value)})


def _described(value: Any) -> Dict[str, Any]:
    """A number as it is; of an array or tensor its extremes; of anything else its text."""
    if isinstance(value, (bool, int, float)):
        return {"value": value}
    if isinstance(value, (list, tuple)) and value and all(isinstance(each, (int, float)) for each in value):
        return {"min": min(value), "max": max(value), "size": len(value)}
    if hasattr(value, "numel") and hasattr(value, "detach"):
        return _extremes(value.detach(), value.numel())
    if hasattr(value, "size") and hasattr(value, "dtype") and isinstance(value.size, int):
        return _extremes(value, value.size) if value.dtype.kind in "fiub" else {"text": repr(value)[:_TEXT]}
    return {"text": repr(value)[:_TEXT]}


def _extremes(value: Any, size: int) -> Dict[str, Any]:
    if not size:
        return {"size": 0}
    if getattr(value, "is_complex", bool)():
        return {"size": size}
    return {"min": float(value.min()), "max": float(value.max()), "size": size}


def _where() -> str:
    """File and line of the test's own code that drew."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_back is not None:
        file = frame.f_code.co_filename
        if not file.startswith(FOLDER) and not any(one in file for one in _LIBRARIES):
            return f"{file.rsplit(os.sep, 1)[-1]}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
