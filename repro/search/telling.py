"""Which trial best tells whether a boundary is a change point, or the rate changes in another way there.

Under a step each neighbour has its side's rate; on a slope it has not, nor have those a few places on. Where
the two differ most depends on how wide the slope is and where on it the boundary lies, so the trials go where
the accounts that are still likely predict the most different outcomes.
"""

from __future__ import annotations

from repro.search.accounts import Account
from repro.search.policy import Choice, Question, entropy, worth_of
from repro.search.shape import Shape

_RIVALS = 12
"""Accounts that a trial is chosen against: the likeliest."""
_BATCH = 50
"""A batch is one trial more than this part of those made."""


def telling(shape: Shape, question: Question) -> Choice | None:
    """The candidate whose trials best tell the account that names the boundary from those that do not.

    Bits are those of one trial between two equally likely accounts, weighed by how likely the rival is. At a
    new candidate they fall off towards the entropy of the question, as everywhere in the search.
    """
    named = max((pair for pair in shape.accounts if pair[0].named), key=lambda pair: pair[1])[0]
    others = [pair for pair in shape.accounts if not pair[0].named]
    rivals = sorted(others, key=lambda pair: -pair[1])[:_RIVALS]
    built = set(question.tested)
    best: Choice | None = None
    for index in _candidates(named, question):
        worth = sum(share * _bits(named.rate(index), rival.rate(index)) for rival, share in rivals)
        if index not in built:
            worth = worth_of(worth, entropy(shape.named), question.build_cost)
        if best is None or worth > best.worth * (1.0 + 1e-9):
            best = Choice(index, 1 + question.trials // _BATCH, worth)
    return best


def _candidates(named: Account, question: Question) -> list[int]:
    """Those around the boundary, ever farther apart, and all that are built."""
    distances = [1, 2, 3, 4, 6, 8]
    while distances[-1] < question.candidates:
        distances.append(distances[-1] * 4 // 3)
    near = {named.low + 1 - distance for distance in distances}
    near |= {named.high - 1 + distance for distance in distances} | set(question.tested)
    return sorted(index for index in near - question.skipped if 0 <= index < question.candidates)


def _bits(one: float, other: float) -> float:
    """Jensen-Shannon divergence of two failure rates."""
    return entropy((one + other) / 2.0) - (entropy(one) + entropy(other)) / 2.0
