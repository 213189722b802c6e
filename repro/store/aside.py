"""Beginning anew without losing what there was: evidence is set aside, never deleted."""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from pathlib import Path

from repro.store.ledger import Ledger
from repro.trial.records import Mode


def set_aside(path: Path, *, cells: Collection[str], revision: str, test: str, mode: Mode) -> Path | None:
    """Move the blocks of some series to `set-aside/` beside the ledger, and make the ledger anew.

    Args:
        path: the ledger.
        cells: ids of the cells.

    Returns:
        The folder that holds them now, or None where there was nothing to move.
    """
    wanted = {"subject": revision, "test": test, "mode": mode.value}
    moved: Path | None = None
    for folder in sorted((path.parent / "blocks").glob("*")):
        request = _request(folder)
        if request.get("cell") in cells and all(request.get(key) == value for key, value in wanted.items()):
            moved = moved or _new_home(path.parent)
            folder.rename(moved / folder.name)
    if moved is not None:
        Ledger.rebuild(path).close()
    return moved


def _request(folder: Path) -> dict[str, object]:
    try:
        request = json.loads((folder / "request.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return request if isinstance(request, dict) else {}


def _new_home(state: Path) -> Path:
    home = state / "set-aside" / time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    home.mkdir(parents=True, exist_ok=True)
    return home
