"""What an expert switches to see whether a failure goes away, around each trial of a block.

An intervention changes how the test runs and nothing about its inputs, so that the same seeds with and
without it tell what the failure depends on. Such trials are no evidence of how often the test fails.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
from typing import Any, Callable, ContextManager, Dict, Iterator, Mapping, Sequence, Set, Tuple

from ..dispatching import dispatching, name_of
from .widening import widened

Touched = Dict[str, int]
"""How often each intervention found something to change."""

_EMPTY = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted")


def _filled(value: float, touched: Callable[[], None]) -> ContextManager[Any]:
    """New memory that nobody wrote to holds a value: NaN shows who reads it, and 0 hides it."""
    torch = sys.modules["torch"]

    def filled(func: Any, args: Any, kwargs: Dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        if name_of(func) in _EMPTY:
            touched()
            _fill(torch, result, value)
        return result

    return dispatching(filled)


def _fill(torch: Any, tensor: Any, value: float) -> None:
    if not tensor.numel():
        return
    if value == value or tensor.is_floating_point() or tensor.is_complex():
        tensor.fill_(value)
    elif tensor.dtype != torch.bool:
        tensor.fill_(torch.iinfo(tensor.dtype).max)


@contextlib.contextmanager
def _one_thread(touched: Callable[[], None]) -> Iterator[None]:
    torch: Any = sys.modules["torch"]
    threads = torch.get_num_threads()
    if threads > 1:
        touched()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def _deterministic(touched: Callable[[], None]) -> Iterator[None]:
    """torch's deterministic algorithms, without the NaN that it would fill empty tensors with."""
    torch: Any = sys.modules["torch"]
    touched()
    settings: Any = getattr(torch.utils, "deterministic", None)
    filled = getattr(settings, "fill_uninitialized_memory", None)
    before, warned = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    if filled is not None:
        settings.fill_uninitialized_memory = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warned)
        if filled is not None:
            settings.fill_uninitialized_memory = filled


@contextlib.contextmanager
def _first_config(touched: Callable[[], None]) -> Iterator[None]:
    """Triton's autotuner takes the first configuration, and runs no kernel to time it."""
    tuner = getattr(sys.modules.get("triton.runtime.autotuner"), "Autotuner", None)
    if tuner is None:
        yield
        return
    original = tuner.run

    @functools.wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        touched()
        configs = self.configs
        self.configs = configs[:1]
        try:
            return original(self, *args, **kwargs)
        finally:
            self.configs = configs

    tuner.run = run
    try:
        yield
    finally:
        tuner.run = original


def _poisoned(touched: Callable[[], None]) -> ContextManager[Any]:
    return _filled(float("nan"), touched)


def _zeroed(touched: Callable[[], None]) -> ContextManager[Any]:
    return _filled(0.0, touched)


def _widened(touched: Callable[[], None]) -> ContextManager[Any]:
    return widened(sys.modules["torch"], touched)


INTERVENTIONS: Mapping[str, Callable[[Callable[[], None]], ContextManager[Any]]] = {
    "poison": _poisoned,
    "zero-fill": _zeroed,
    "float64": _widened,
    "one-thread": _one_thread,
    "deterministic": _deterministic,
    "first-config": _first_config,
}
"""By name, what it does to a trial; it calls its argument whenever it finds something to change."""


class Interventions:
    """The interventions of a block.

    Args:
        plan: names of `INTERVENTIONS` for each trial, from the first on again when it is through. They need
            torch, and do nothing in a process that has not loaded it.
    """

    def __init__(self, plan: Sequence[Tuple[str, ...]]) -> None:
        self._warm_up({name for names in plan for name in names})
        self._plan = itertools.cycle(plan or [()])
        self.touched: Touched = {}

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Around one trial."""
        names = next(self._plan)
        self.touched = dict.fromkeys(names, 0)
        with contextlib.ExitStack() as stack:
            for name in names if "torch" in sys.modules else ():
                stack.enter_context(INTERVENTIONS[name](functools.partial(self._count, name)))
            yield

    @staticmethod
    def _warm_up(names: Set[str]) -> None:
        """Load what interventions load, which takes seconds, before a trial has to show signs of life."""
        torch: Any = sys.modules.get("torch")
        for name in names if torch is not None else ():
            with INTERVENTIONS[name](lambda: None):
                torch.empty(1)

    def _count(self, name: str) -> None:
        self.touched[name] += 1
