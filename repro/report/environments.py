"""What cells have in common, and what differs between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from repro.report.model import CellFacts

_FIRST = ("python", "torch", "triton", "cuda", "ptxas", "ptxas_from", "numpy", "gpu", "capability", "driver")
_LEFT_OUT = ("cell", "schema", "block", "test", "mode")

COLUMNS = 16
"""Facts that differ between cells, at most."""

Table = tuple[list[tuple[str, str]], list[str], list[tuple[str, list[str]]]]
"""What is common, names of what differs, and a row a cell of what differs."""


def environment_table(environments: Sequence[CellFacts]) -> Table:
    """Split facts into those that all environments share and those that differ."""
    flat = [(each.cell, _flat(each.facts)) for each in environments]
    names = sorted({name for _, facts in flat for name in facts}, key=_order)
    common = [name for name in names if len({facts.get(name) for _, facts in flat}) == 1]
    differing = [name for name in names if name not in set(common)][:COLUMNS]
    shared = [(name, flat[0][1][name]) for name in common]
    if not differing:
        return shared, [], []
    return shared, differing, [(cell, [facts.get(name, "-") for name in differing]) for cell, facts in flat]


def _flat(facts: Mapping[str, Any]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            flat |= {f"{name} {key}": _plain(each) for key, each in value.items()}
        elif name not in _LEFT_OUT:
            flat[name] = _plain(value)
    return flat


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value)


def _order(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST)), name
