"""Where the probe hears of what a dispatch mode does not see: differentiation, functions, Triton's kernels.

The hooks are put in place when torch is loaded, before a test file can take a function's name for its own;
without a session each is a plain call.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any, Iterator, List, Optional

_watching: List[Any] = []


@contextlib.contextmanager
def watched_by(session: Any) -> Iterator[None]:
    """Let a session hear of everything in the body."""
    _hook_triton()
    _watching.append(session)
    try:
        yield
    finally:
        _watching.pop()


def _session() -> Optional[Any]:
    return _watching[-1] if _watching and not _watching[-1].asleep else None


def loaded(name: str) -> None:
    """Put the hooks of torch in place, where it was loaded."""
    if name == "torch":
        torch: Any = sys.modules["torch"]
        _hook_engine(torch)
        _hook_functions(torch)


def _hook_engine(torch: Any) -> None:
    """`backward` and `grad` both go through this one function."""
    original = getattr(torch.autograd, "_engine_run_backward", None)
    if original is None or hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def engine(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        session = _session()
        if session is None:
            return original(outputs, *args, **kwargs)
        return session.differentiate(original, outputs, args, kwargs)

    torch.autograd._engine_run_backward = engine


def _hook_functions(torch: Any) -> None:
    """A Function may hand its inputs to a kernel without an operation of torch in between."""
    function = torch.autograd.Function
    original = function.__dict__.get("apply")
    if not isinstance(original, classmethod):
        return

    @functools.wraps(original.__func__)
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        session = _session()
        if session is not None:
            with session.guarded():
                session.meet([one for one in session.tensors((args, kwargs)) if session.shadows.plain(one)])
        return original.__func__(cls, *args, **kwargs)

    function.apply = classmethod(apply)


def _hook_triton() -> None:
    for module, name in (
        ("triton.runtime.jit", "KernelInterface"),
        ("triton.compiler.compiler", "CompiledKernel"),
        ("triton.runtime.interpreter", "InterpretedFunction"),
    ):
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and "__getitem__" in vars(kind):
            _hook_launches(kind)


def _hook_launches(kind: Any) -> None:
    original = vars(kind)["__getitem__"]
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def launcher(self: Any, grid: Any) -> Any:
        launch = original(self, grid)

        def launched(*args: Any, **kwargs: Any) -> Any:
            session = _session()
            if session is None:
                return launch(*args, **kwargs)
            return _launch(session, f"triton.{_kernel_name(self)}", launch, args, kwargs)

        return launched

    kind.__getitem__ = launcher


def _launch(session: Any, name: str, launch: Any, args: Any, kwargs: Any) -> Any:
    """A launch, and a step for each tensor that the kernel wrote."""
    tensors = [one for one in session.tensors((args, kwargs)) if session.shadows.plain(one)]
    before: Any = None
    with session.guarded():
        session.meet(tensors)
        before = session.before(tensors)
    with session.paused():
        result = launch(*args, **kwargs)
    with session.guarded():
        for tensor in tensors:
            if session.shadows.fits(tensor):
                session.notice(tensor, name, before)
    return result


def _kernel_name(kernel: Any) -> str:
    for _ in range(8):  # autotuners and heuristics wrap each other
        name = getattr(kernel, "__name__", None) or getattr(kernel, "name", None)
        if isinstance(name, str):
            return name
        kernel = getattr(kernel, "fn", None)
    return "kernel"
