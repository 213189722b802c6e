"""An answer with what was asked about it afterwards, as values and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from repro.bisect.answer import Answer
from repro.bisect.split import Split
from repro.subject import Touched


@dataclass(frozen=True, kw_only=True)
class Everywhere:
    """Failing inputs, replayed at every candidate.

    Args:
        inputs: how many.
        fails: candidates at which all of them fail.
        ran: candidates at which they ran.
        same_elements: whether the same elements differ wherever they fail.
    """

    inputs: int
    fails: int
    ran: int
    same_elements: bool


@dataclass(frozen=True, kw_only=True)
class Result:
    """An answer, and what was asked about it afterwards.

    Args:
        answer: of the search.
        split: which part of a release carries the change.
        everywhere: what failing inputs did at every version, where nothing changed.
        touched: what the named commit changed.
        link: web address that shows the change, or "".
        inside: what was found inside the merge that was named.
        seconds: wall time.
    """

    answer: Answer
    split: Split | None = None
    everywhere: Everywhere | None = None
    touched: Touched | None = None
    link: str = ""
    inside: Result | None = None
    seconds: float = 0.0

    @property
    def innermost(self) -> Result:
        """The answer inside the merge inside the merge, and so on."""
        return self if self.inside is None else self.inside.innermost


def to_json(result: Result) -> dict[str, Any]:
    """The answer's own keys, then the rest; of a merge that was looked into, the innermost answer."""
    inner = result.innermost
    told = inner.answer.to_json()
    told["seconds"] = round(result.seconds, 2)
    if inner is not result:
        told["merge"] = result.answer.to_json()
        told["trials"] += result.answer.trials
        told["builds"] += result.answer.builds
    if inner.split is not None:
        told["split"] = _split_json(inner.split)
    if inner.everywhere is not None:
        told["everywhere"] = vars(inner.everywhere)
    if inner.touched is not None:
        told["touched"] = {
            "words": inner.touched.words,
            **{k: list(v) for k, v in vars(inner.touched).items()},
        }
    if inner.link:
        told["link"] = inner.link
    return told


def _split_json(parts: Split) -> dict[str, Any]:
    return {
        "parts": list(parts.parts),
        "interaction": parts.interaction,
        "said": parts.said,
        "cells": [
            {
                "id": each.cross.cell.id,
                "part": each.cross.part,
                "from": "new" if each.cross.new else "old",
                "failed": each.counts.failed,
                "trials": each.counts.rated,
                "like": {True: "after", False: "before", None: None}[each.after],
                "why": each.why,
            }
            for each in parts.judged
        ],
    }
