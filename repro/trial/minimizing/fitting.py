"""Kept inputs given to a test of other sizes: cut to its shapes, with the elements that matter in them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, FrozenSet, List, Sequence

from ..inputs.draws import Draws

_MOST_DRAWS = 4
"""Draws of which every subset may be left to the generator; with more, one at a time."""


@dataclass(frozen=True)
class Way:
    """One way to fit kept inputs.

    Args:
        free: draws that are left to the generator: where a size has another meaning, a cut fits nothing.
        last: whether a shorter dimension is filled up from its end rather than its beginning.
    """

    free: FrozenSet[int] = frozenset()
    last: bool = False


def ways(draws: int) -> List[Way]:
    """All ways that are tried, those that keep most first."""
    places = range(draws)
    sizes = range(draws) if draws <= _MOST_DRAWS else (0, 1)
    subsets = [frozenset(one) for size in sizes for one in itertools.combinations(places, size)]
    if draws > _MOST_DRAWS:
        subsets += [frozenset(places) - {one} for one in places]
    return [Way(free=free, last=last) for free in subsets for last in (False, True)]


class Given(Draws):
    """Draws that take their values from kept ones of whatever sizes, and are recorded as they are used."""

    def __init__(self, torch: Any, kept: Sequence[Any] = (), way: Way = Way()) -> None:
        super().__init__(torch, list(kept))
        self._kept, self._way = list(kept), way

    def drawn(self, name: str, result: Any, args: Any) -> Any:
        """Put the fitted values in the place of a draw, and record what the test gets."""
        place = len(self.described)
        tensor = result[1] if isinstance(result, tuple) else result
        replayed: List[Any] = self._replayed if self._replayed is not None else []
        if place < len(replayed):
            replayed[place] = self._fitted(place, tensor)
        result = super().drawn(name, result, args)
        if len(self.described) > place:
            self._keep(tensor)
        return result

    def _fitted(self, place: int, tensor: Any) -> Any:
        kept = self._kept[place]
        if place in self._way.free or kept.dim() != tensor.dim():
            return tensor
        return fit(self._torch, kept, tuple(tensor.shape), last=self._way.last).to(tensor.dtype)


def fit(torch: Any, kept: Any, shape: Sequence[int], *, last: bool) -> Any:
    """A tensor cut to a shape, dimension by dimension, that holds as much of what is not 0 as fits.

    A dimension that is longer than before is filled up with zeros.
    """
    for dimension, size in enumerate(shape):
        if kept.shape[dimension] > size:
            chosen = _chosen(kept, dimension, size, last=last)
            kept = kept.index_select(dimension, torch.tensor(chosen, dtype=torch.int64))
    if tuple(kept.shape) == tuple(shape):
        return kept
    grown = torch.zeros(shape, dtype=kept.dtype)
    grown[tuple(slice(size) for size in kept.shape)] = kept
    return grown


def _chosen(kept: Any, dimension: int, size: int, *, last: bool) -> List[int]:
    """Indexes along a dimension: those of slices that are not 0 first."""
    total = kept.shape[dimension]
    if kept.numel() == 0 or size == 0:
        return list(range(size))
    used = kept.movedim(dimension, 0).reshape(total, -1).ne(0).any(1)
    marked = used.nonzero().flatten().tolist()
    marked = marked[-size:] if last else marked[:size]
    taken = set(marked)
    others = [index for index in range(total) if index not in taken]
    room = size - len(marked)
    filling = others[len(others) - room :] if last else others[:room]
    return sorted(marked + filling)
