"""Sees every operation of torch in a context, forward and backward."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Callable, ContextManager, Dict

Operate = Callable[[Any, Any, Dict[str, Any]], Any]
"""Takes an operation, its arguments and its keywords; gives what the operation shall give."""


def dispatching(operate: Operate) -> ContextManager[Any]:
    """A context in which each operation of torch goes through a function."""
    base: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Dispatching(base):  # type: ignore[misc]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Skipping it imports it, which takes seconds: needless where nobody compiles."""
            return "torch._dynamo" in sys.modules

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return operate(func, args, kwargs or {})

    mode: ContextManager[Any] = Dispatching()
    return mode


def name_of(func: Any) -> str:
    """An operation's name without overload, such as `mul`; "" where it has none."""
    return str(getattr(getattr(func, "overloadpacket", None), "__name__", ""))
