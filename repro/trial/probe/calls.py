"""Inputs that are differentiated by, and calls that differentiate."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Sequence, Tuple

from .numbers import EPSILON, name_of
from .shadows import Shadows


class Enough(BaseException):
    """The run has come to where its value is known; what follows would change nothing."""


@contextlib.contextmanager
def ending_quietly(item: Any) -> Iterator[None]:
    """Let `Enough` end a test without a report: pytest would read and parse torch's sources for it."""
    runtest = item.runtest

    def quiet() -> None:
        with contextlib.suppress(Enough):
            runtest()

    item.runtest = quiet
    try:
        yield
    finally:
        del item.runtest


@dataclass
class Nudge:
    """A change of one element of one input, made just before the input's first use.

    Args:
        leaf: number of the input.
        element: index of the element.
        by: how much is added.
        last: number of the last call to differentiate that is of interest.
        moved: how far the element really moved, as its type has it; set when it is done.
    """

    leaf: int
    element: Tuple[int, ...]
    by: float
    last: int
    moved: Optional[float] = None
    undo: Optional[Tuple[Any, Any]] = None

    def apply(self, tensor: Any) -> None:
        """Move the element."""
        before = tensor.data[self.element].clone()
        tensor.data[self.element] += self.by
        self.moved = float(tensor.data[self.element].double() - before.double())
        self.undo = (tensor, before)

    def take_back(self) -> None:
        """Put the element back where the input outlives the run."""
        if self.undo is not None:
            tensor, before = self.undo
            tensor.data[self.element] = before
            self.undo = None


class Leaves:
    """The leaves of autograd's graphs, numbered in the order of their first use.

    Each counts as exact: what comes before it is the same for both sides of a comparison.
    """

    def __init__(self, shadows: Shadows, nudge: Optional[Nudge]) -> None:
        self.tensors: List[Any] = []
        self._shadows = shadows
        self._nudge = nudge

    def meet(self, tensors: Sequence[Any]) -> None:
        """Tensors are about to be used."""
        for tensor in tensors:
            if tensor.requires_grad and tensor.is_leaf and self.number(tensor) is None:
                if self._nudge is not None and self._nudge.leaf == len(self.tensors):
                    self._nudge.apply(tensor)
                self.tensors.append(tensor)
                if self._shadows.fits(tensor):
                    self._shadows.exact(tensor)

    def number(self, tensor: Any) -> Optional[int]:
        """The number of an input, or None."""
        return next((number for number, one in enumerate(self.tensors) if one is tensor), None)


@dataclass
class Call:
    """One call of `backward` or `grad`: the function whose gradient it gave.

    Args:
        roots: values of the tensors that were differentiated, in float64.
        weights: the gradients that went in, in float64.
        opaque: why the values were not all computed in float64, or "".
        rounding: one rounding of each value, times its weight: in its own type if a kernel gave it, else in
            float64, which leaves out what kernels further up rounded.
    """

    roots: List[Any]
    weights: List[Any]
    opaque: str
    rounding: List[Any]

    @classmethod
    def of(cls, session: Any, roots: Sequence[Any], weights: Any) -> Call:
        """Keep what is about to be differentiated."""
        torch, shadows = session.torch, session.shadows
        found = cls([], [], "", [])
        given = list(weights) if isinstance(weights, (tuple, list)) else [weights]
        for root, weight in zip(roots, given or [None] * len(roots)):  # noqa: B905
            session.notice(root)
            known = shadows.known(root)
            wide = shadows.view(root).clone()
            factor = torch.ones_like(wide) if weight is None else weight.detach().to(wide.dtype)
            found.roots.append(wide)
            found.weights.append(factor)
            found.opaque = found.opaque or (known.opaque if known else "")
            epsilon = EPSILON[name_of(root.dtype) if known and known.direct else "float64"]
            found.rounding.append((wide * factor).abs() * (epsilon / 2))
        return found

    def change(self, other: Call) -> Tuple[float, float]:
        """How far the function moved from here to `other`, and what rounding alone may have moved it."""
        total, noise = 0.0, 0.0
        for mine, theirs, weight, rounding in zip(  # noqa: B905
            self.roots, other.roots, self.weights, self.rounding
        ):
            difference = theirs - mine
            total += float((difference * weight).sum())
            moved = difference != 0
            noise += float((rounding[moved] ** 2).sum())
        return total, noise**0.5
