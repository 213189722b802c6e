"""Keeps what torch's random functions gave as bits, and gives it again in place of a generator's."""

from __future__ import annotations

import random
import sys
from typing import Any, Dict, List, Optional

from ..dispatching import dispatching, name_of

RANDOM = frozenset(
    (
        "rand",
        "rand_like",
        "randn",
        "randn_like",
        "randint",
        "randint_like",
        "randperm",
        "uniform",
        "uniform_",
        "normal",
        "normal_",
        "bernoulli",
        "bernoulli_",
        "native_dropout",
        "_fused_dropout",
        "multinomial",
        "exponential",
        "exponential_",
        "cauchy",
        "cauchy_",
        "geometric",
        "geometric_",
        "log_normal",
        "log_normal_",
        "random",
        "random_",
        "poisson",
        "binomial",
        "_standard_gamma",
        "_sample_dirichlet",
        "normal_functional",
    )
)
"""torch's operations that draw."""
MOST_BYTES = 2**30
"""Draws of one test beyond this are not kept."""


class Draws:
    """The draws of one run of a test, in order.

    Args:
        torch: the module.
        replayed: tensors that take the place of the draws, or None to record.
    """

    def __init__(self, torch: Any, replayed: Optional[List[Any]] = None) -> None:
        self._torch = torch
        self._replayed = replayed
        self.described: List[Dict[str, Any]] = []
        self.tensors: List[Any] = []
        self._bytes = 0

    @property
    def too_large(self) -> bool:
        """Whether there was more than is kept."""
        return self._bytes > MOST_BYTES

    def mode(self) -> Any:
        """A context in which torch's random functions are recorded or replaced."""

        def recorded(func: Any, args: Any, kwargs: Dict[str, Any]) -> Any:
            result, name = func(*args, **kwargs), name_of(func)
            return self.drawn(name, result, args) if name in RANDOM else result

        return dispatching(recorded)

    def drawn(self, name: str, result: Any, args: Any) -> Any:
        """Note a draw, or put the kept one in its place; the generator went on in either case."""
        dropout = name in ("native_dropout", "_fused_dropout")
        if dropout and len(args) > 2 and args[2] is False:
            return result  # not training: nothing is drawn
        tensor = result[1] if dropout else result
        place = len(self.described)
        self.described.append(_describe(name, tensor))
        if self._replayed is None:
            self._keep(tensor)
        elif place < len(self._replayed) and self._fits(self._replayed[place], tensor):
            tensor.copy_(self._replayed[place])
            if dropout:
                result[0].copy_(_dropped(name, args, tensor))
        return result

    def _keep(self, tensor: Any) -> None:
        self._bytes += tensor.numel() * tensor.element_size()
        if self.too_large:
            self.tensors.clear()
        else:
            self.tensors.append(tensor.detach().to("cpu", copy=True).contiguous())

    @staticmethod
    def _fits(kept: Any, tensor: Any) -> bool:
        return bool(kept.shape == tensor.shape and kept.dtype == tensor.dtype)


def _dropped(name: str, args: Any, mask: Any) -> Any:
    """What dropout gives for this mask."""
    kept = 1.0 - args[1] if name == "native_dropout" else args[1]
    return args[0] * mask * (1.0 / kept if kept else 0.0)


def _describe(name: str, tensor: Any) -> Dict[str, Any]:
    return {
        "op": name,
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).replace("torch.", ""),
        "device": tensor.device.type,
    }


def same_sequence(ours: List[Dict[str, Any]], theirs: List[Dict[str, Any]]) -> bool:
    """Whether two runs drew the same shapes and types in the same order, on whatever device."""
    return _sequence(ours) == _sequence(theirs)


def _sequence(described: List[Dict[str, Any]]) -> List[Any]:
    return [(one["op"], one["shape"], one["dtype"]) for one in described]


def generator_states() -> Dict[str, Any]:
    """The states of Python's and numpy's global generators, in plain containers."""
    states: Dict[str, Any] = {"python": random.getstate()}
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        states["numpy"] = (kind, [int(key) for key in keys], *rest)
    return states


def restore_states(states: Dict[str, Any]) -> None:
    """Put Python's and numpy's global generators where they were."""
    random.setstate(states["python"])
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and "numpy" in states:
        kind, keys, *rest = states["numpy"]
        numpy.random.set_state((kind, numpy.array(keys, dtype=numpy.uint32), *rest))
