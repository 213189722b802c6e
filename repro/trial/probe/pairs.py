"""The pairs of tensors that a comparison is about, each with its copy in float64."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Tuple

from ..comparing.measure_torch import leaves_of
from .session import Session
from .shadows import Shadow


def pairs_of(session: Session, bound: Mapping[str, Any]) -> Iterator[Tuple[int, Any, Any]]:
    """The pairs of real tensors of one shape, numbered as they stand in nested data.

    Args:
        session: the run that compares.
        bound: arguments of the call that compares, by their names.
    """
    torch, fits = session.torch, session.shadows.fits
    nested = (bound.get("actual", bound.get("input")), bound.get("expected", bound.get("other")))
    for number, (_, actual, expected) in enumerate(leaves_of(*nested)):
        if not (isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor)):
            continue
        real = actual.is_floating_point() and expected.is_floating_point()
        if fits(actual) and fits(expected) and real and actual.shape == expected.shape:
            yield number, actual, expected


def seen(session: Session, tensor: Any) -> Tuple[Any, Shadow]:
    """A tensor's values in float64, flat, and its copy as it is now."""
    session.notice(tensor)
    shadow = session.shadows.look(tensor)[0]
    return session.shadows.view(tensor).reshape(-1), shadow


class Values:
    """What the failing comparisons of a run compare, in float64.

    Args:
        session: the run.

    `found` has both sides' flat values, None where they are not known, by the comparison's index and the
    pair's number in it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.found: Dict[Tuple[int, int], List[Any]] = {}

    def note(self, index: int, where: str, bound: Mapping[str, Any], passed: bool) -> None:
        """A comparison was made."""
        if passed:
            return
        with self._session.guarded():
            for number, *pair in pairs_of(self._session, bound):
                sides = [seen(self._session, tensor) for tensor in pair]
                self.found[index, number] = [
                    None if shadow.opaque else wide.clone() for wide, shadow in sides
                ]
