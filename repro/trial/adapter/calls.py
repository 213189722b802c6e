"""Sees the calls of an operator, however a test came by it: arguments, and gradients that reach them."""

from __future__ import annotations

import functools
import sys
import types
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Dict, List, Mapping, Optional, Sequence, Tuple

from .seeing import seen


class BadAdapter(Exception):  # noqa: N818
    """An adapter lacks something; the message says what."""


@dataclass(frozen=True)
class AdapterRequest:
    """The adapter that a request brings along.

    Args:
        name: of its file.
        source: of its file; it is run in the cell, beside torch.
        elements: failing elements of a comparison that are looked at, at most; the worst first.
    """

    name: str
    source: str
    elements: int = 20


def parse_adapter(raw: Any) -> Optional[AdapterRequest]:
    """The adapter that a request names, or None.

    Raises:
        ValueError: a field is missing or has the wrong type.
    """
    if raw is None:
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("source"), str):
        raise ValueError("adapter must be an object with the adapter's source")
    usual = AdapterRequest(name="adapter.py", source="")
    name, elements = raw.get("name") or usual.name, raw.get("elements") or usual.elements
    return AdapterRequest(name=str(name), source=raw["source"], elements=int(elements))


@dataclass(frozen=True)
class Adapter:
    """What is known of an operator.

    Args:
        functions: names of the functions whose calls are seen.
        coordinates: arguments whose gradients jump.
        jumps: (arguments, name, index) to the jumps next to one element of an argument's gradient.
        predicted_rate: (arguments, tolerance) to a probability, or None.
    """

    functions: Tuple[str, ...]
    coordinates: Tuple[str, ...]
    jumps: Callable[[Mapping[str, Any], str, Sequence[int]], List[Dict[str, Any]]]
    predicted_rate: Optional[Callable[[Mapping[str, Any], Mapping[str, float]], float]]


def load_adapter(name: str, source: str) -> Adapter:
    """Run an adapter's source.

    Raises:
        BadAdapter: it has no such names, or fails.
    """
    module = types.ModuleType("repro_adapter")
    module.__file__ = name
    sys.modules[module.__name__] = module  # classes of a module look it up there
    try:
        exec(compile(source, name, "exec"), vars(module))
    except Exception as error:
        raise BadAdapter(f"{name} cannot be run: {type(error).__name__}: {error}") from error
    missing = [each for each in ("FUNCTION", "COORDINATES", "jumps") if not hasattr(module, each)]
    if missing:
        raise BadAdapter(f"{name} has no {missing[0]}")
    held: Dict[str, Any] = vars(module)
    return Adapter(
        functions=_texts(held["FUNCTION"]),
        coordinates=_texts(held["COORDINATES"]),
        jumps=held["jumps"],
        predicted_rate=held.get("predicted_rate"),
    )


def _texts(value: Any) -> Tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@dataclass
class Call:
    """One call of the operator.

    Args:
        arguments: by name, as they were at the call; tensors are copies.
        tensors: the tensors among them, themselves.
        gradients: by name, every gradient that reached one of them.
        grad_out: the gradient of the result, or None.
    """

    arguments: Dict[str, Any]
    tensors: Dict[str, Any]
    gradients: Dict[str, List[Any]] = field(default_factory=dict)
    grad_out: Any = None

    @property
    def known(self) -> Dict[str, Any]:
        """What the adapter is told."""
        return {**self.arguments, "grad_out": self.grad_out}

    def owner(self, torch: Any, compared: Any) -> Optional[str]:
        """The argument whose gradient a compared tensor is: the same object, or the same in shape and values.

        Where no gradient was seen on its way, the shape alone decides if one argument alone has it.
        """
        for name, tensor in self.tensors.items():
            if tensor.is_leaf and tensor.grad is compared:
                return name
        for name, reached in self.gradients.items():
            if any(_same(torch, compared, one) for one in reached):
                return name
        fitting = [name for name, tensor in self.tensors.items() if tensor.shape == compared.shape]
        return fitting[0] if len(fitting) == 1 and not self.gradients else None


class Calls:
    """The calls of one run of a test.

    Args:
        torch: the module.
        adapter: says which.
    """

    def __init__(self, torch: Any, adapter: Adapter) -> None:
        self.seen: List[Call] = []
        self.trouble = ""
        self._torch = torch
        self._adapter = adapter

    def watching(self) -> ContextManager[None]:
        """See the calls of the body."""
        return seen(self._adapter.functions, self._adapter.coordinates, self._begin, self._end)

    def _begin(self, arguments: Dict[str, Any]) -> Optional[Call]:
        """A look at a test never becomes its outcome."""
        try:
            return self._called(arguments)
        except Exception as error:
            self.trouble = f"{type(error).__name__}: {error}"[:500]
            return None

    def _called(self, arguments: Dict[str, Any]) -> Call:
        tensors = {name: one for name, one in arguments.items() if isinstance(one, self._torch.Tensor)}
        copies = {name: one.detach().clone() for name, one in tensors.items()}
        call = Call({**arguments, **copies}, tensors)
        for name, tensor in tensors.items():
            if tensor.requires_grad and self._torch.is_grad_enabled():
                tensor.register_hook(functools.partial(_reached, call, name))
        self.seen.append(call)
        return call

    def _end(self, call: Optional[Call], value: Any) -> None:
        if call is not None and isinstance(value, self._torch.Tensor) and value.requires_grad:
            value.register_hook(functools.partial(_left, call))


def _reached(call: Call, name: str, gradient: Any) -> None:
    call.gradients.setdefault(name, []).append(gradient.detach().clone())


def _left(call: Call, gradient: Any) -> None:
    call.grad_out = gradient.detach().clone()


def _same(torch: Any, one: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and values, NaN included."""
    if one.shape != other.shape:
        return False
    ours, theirs = one.detach().double(), other.to(one.device).double()
    return bool(((ours == theirs) | (ours.isnan() & theirs.isnan())).all())
