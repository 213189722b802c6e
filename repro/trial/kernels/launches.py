"""Launches under Triton's interpreter, noted so that their kernels can be compiled for another GPU."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
from typing import Any, Callable, Dict, Iterator, List

TYPES = {
    "torch.bool": "i1",
    "torch.uint8": "u8",
    "torch.int8": "i8",
    "torch.int16": "i16",
    "torch.int32": "i32",
    "torch.int64": "i64",
    "torch.float16": "fp16",
    "torch.bfloat16": "bf16",
    "torch.float32": "fp32",
    "torch.float64": "fp64",
    "torch.float8_e4m3fn": "fp8e4nv",
    "torch.float8_e5m2": "fp8e5",
}
"""Triton's names of torch's types."""

ALIGNED = 16
"""What Triton specialises a kernel on: whether an address, or a whole number, is a multiple of it."""

_PLAIN = (bool, int, float, str, type(None))

Note = Dict[str, Any]


class Launches:
    """Notes of launches: one for each kernel, types of its arguments, constants and options."""

    def __init__(self) -> None:
        self._seen: Dict[str, Note] = {}
        self._new: List[Note] = []

    def add(self, executor: Any, args: Any, kwargs: Any) -> None:
        """Note a launch, unless one like it was noted."""
        note = described(executor, args, kwargs)
        key = json.dumps(note, sort_keys=True)
        if key not in self._seen:
            self._seen[key] = note
            self._new.append(note)

    def take(self) -> List[Note]:
        """What was noted since the last time."""
        new, self._new = self._new, []
        return new


@contextlib.contextmanager
def noted_in(launches: Launches) -> Iterator[None]:
    """Note every launch in the body; nothing where there is no Triton, or no interpreter."""
    try:
        executor: Any = importlib.import_module("triton.runtime.interpreter").GridExecutor
    except (ImportError, AttributeError):
        yield
        return
    original: Callable[..., Any] = executor.__call__

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        launches.add(self, args, kwargs)
        return original(self, *args, **kwargs)

    executor.__call__ = call
    try:
        yield
    finally:
        executor.__call__ = original


def described(executor: Any, args: Any, kwargs: Any) -> Note:
    """A launch as plain values.

    Args:
        executor: Triton's `GridExecutor`: function, names of its arguments, which of them are constants.
        args, kwargs: of the launch.
    """
    function, names = executor.fn, executor.arg_names
    given = {name: value for name, value in kwargs.items() if name in names}
    values = inspect.getcallargs(function, *args, **given)
    return {
        "kernel": function.__name__,
        "module": function.__module__,
        "file": function.__code__.co_filename,
        "arguments": {
            name: _constant(values[name]) if name in executor.constexprs else _argument(values[name])
            for name in names
        },
        "options": {
            name: value
            for name, value in kwargs.items()
            if name not in names and name not in ("grid", "warmup") and isinstance(value, _PLAIN)
        },
    }


def _argument(value: Any) -> Dict[str, Any]:
    """Type and specialisation of an argument, or `why` there are none."""
    if hasattr(value, "data_ptr"):
        kind = TYPES.get(str(value.dtype))
        if kind is None:
            return {"why": f"a tensor of {value.dtype}"}
        return {"type": f"*{kind}", "aligned": value.data_ptr() % ALIGNED == 0}
    if isinstance(value, bool):
        return {"type": "i1"}
    if isinstance(value, int):
        wide = not -(2**31) <= value < 2**31
        kind = "u64" if value >= 2**63 else "i64" if wide else "i32"
        return {"type": kind, "aligned": value % ALIGNED == 0, "one": value == 1}
    if isinstance(value, float):
        return {"type": "fp32"}
    return _constant(value)


def _constant(value: Any) -> Dict[str, Any]:
    """A value that is compiled in."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if type(value).__name__ == "dtype" and type(value).__module__.startswith("triton."):
        return {"dtype": value.name}
    if isinstance(value, (list, tuple)) and all(isinstance(one, _PLAIN) for one in value):
        return {"constant": list(value)}
    if isinstance(value, _PLAIN):
        return {"constant": value}
    return {"why": f"a {type(value).__name__}"}
