"""Which trial best tells whether a boundary is a change point, or the rate changes in some other way there."""

from __future__ import annotations

from repro.search.policy import Choice, Question, entropy, worth_of
from repro.search.shape import Account, Shape

_RIVALS = 12
"""Accounts that a trial is chosen against: the likeliest."""
_BATCH = 50
"""A batch is one trial more than this part of those made."""


def telling(shape: Shape, question: Question) -> Choice | None:
    """The candidate whose trials tell best between the accounts that name the boundary and the others.

    The information of a trial is weighed by how likely the other account is; that of trials at a new candidate falls off
    towards the entropy of the question, as `policy` has it.
    """
    named = max((pair for pair in shape.accounts if pair[0].named), key=lambda pair: pair[1])[0]
    others = sorted((pair for pair in shape.accounts if not pair[0].named), key=lambda pair: -pair[1])[:_RIVALS]
    built = set(question.tested)
    limit = entropy(shape.named)
    best: Choice | None = None
    for index in _candidates(named, question):
        bits = sum(share * _bits(named, other, index) for other, share in others)
        worth = bits if index in built else worth_of(bits, limit, question.build_cost)
        if best is None or worth > best.worth * (1.0 + 1e-9):
            best = Choice(index, 1 + question.trials // _BATCH, worth)
    return best


def _candidates(named: Account, question: Question) -> list[int]:
    steps = [1, 2, 3, 4, 6, 8]
    while steps[-1] < question.candidates:
        steps.append(steps[-1] * 4 // 3)
    near = {named.low + 1 - step for step in steps} | {named.high - 1 + step for step in steps}
    return sorted(i for i in near | set(question.tested) if 0 <= i < question.candidates and i not in question.skipped)


def _bits(one: Account, other: Account, index: int) -> float:
    left, right = one.rate(index), other.rate(index)
    return entropy((left + right) / 2.0) - (entropy(left) + entropy(right)) / 2.0
