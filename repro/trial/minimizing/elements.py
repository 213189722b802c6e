"""The elements of all that a test drew, numbered through from the first draw to the last."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from ..comparing.measure_numbers import unravel
from .reduction import Span

_LISTED = 64


class Elements:
    """Tensors on the CPU whose elements are set one by one, or span by span."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        self._tensors = list(tensors)
        self._starts: List[int] = []
        total = 0
        for tensor in self._tensors:
            self._starts.append(total)
            total += tensor.numel()
        self.total = total

    @property
    def spans(self) -> List[Span]:
        """One for each tensor with an element."""
        ends = [*self._starts[1:], self.total]
        return [(start, end) for start, end in zip(self._starts, ends) if end > start]  # noqa: B905

    def only(self, spans: Sequence[Span]) -> List[Any]:
        """Copies in which every other element is plain: 0, or a whole number's least value."""
        copies = [_plain(tensor) for tensor in self._tensors]
        for first, last in spans:
            for place, start in enumerate(self._starts):
                tensor = self._tensors[place]
                low, high = max(first - start, 0), min(last - start, tensor.numel())
                if low < high:
                    copies[place].view(-1)[low:high] = tensor.reshape(-1)[low:high]
        return copies

    def nonzero(self, most: int) -> List[Tuple[int, int]]:
        """(draw, place in it) of elements of floating-point draws that are not 0, up to `most`."""
        found: List[Tuple[int, int]] = []
        for draw, tensor in enumerate(self._tensors):
            if tensor.is_floating_point():
                places = tensor.reshape(-1).nonzero().flatten()[: most - len(found)]
                found += [(draw, int(place)) for place in places]
        return found

    def value(self, at: Tuple[int, int]) -> float:
        """The element at (draw, place in it)."""
        return float(self._tensors[at[0]].reshape(-1)[at[1]])

    def changed(self, at: Tuple[int, int], value: float) -> List[Any]:
        """The tensors with another value at (draw, place in it)."""
        copy = self._tensors[at[0]].clone()
        copy.view(-1)[at[1]] = value
        return [copy if draw == at[0] else tensor for draw, tensor in enumerate(self._tensors)]


def _plain(tensor: Any) -> Any:
    copy = tensor.clone()
    if (
        tensor.numel()
        and not tensor.is_floating_point()
        and not tensor.is_complex()
        and tensor.dtype.itemsize > 1
    ):
        return copy.fill_(int(tensor.min()))
    return copy.zero_()


def describe_elements(tensors: Sequence[Any], described: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    """How many elements are not 0, of how many, and the first of them with index and value."""
    left = [int(tensor.ne(0).sum()) for tensor in tensors]
    listed: List[Dict[str, Any]] = []
    for draw, tensor in enumerate(tensors):
        flat = tensor.reshape(-1)
        for place in flat.ne(0).nonzero().flatten()[: _LISTED - len(listed)].tolist():
            value = flat[place].item()
            index = unravel(place, list(tensor.shape))
            listed.append({"draw": draw, "op": described[draw]["op"], "index": index, "value": value})
    return {"left": sum(left), "drawn": sum(tensor.numel() for tensor in tensors), "elements": listed}
