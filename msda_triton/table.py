"""Tiles that were measured, by what they were measured for: a file that the user asked for, or nothing."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import torch

from .plans import INTERPRETED

VARIABLE = "MSDA_TRITON_TILES"
measured: dict[str, tuple[int, int]] = {}  # queries and warps; set in this process by `tuning.tune`


def look_up(*what: str) -> tuple[int, int] | None:
    """Queries and warps of a program where somebody measured them for `what`, else None."""
    if not measured and VARIABLE not in os.environ:
        return None
    name = key(*what)
    return measured.get(name) or _kept(os.environ.get(VARIABLE, "")).get(name)


def key(*what: str) -> str:
    """What a measurement holds for, this GPU's architecture included, as a name in the file."""
    where = "interpreter"
    if not INTERPRETED:
        major, minor = torch.cuda.get_device_capability()
        where = f"sm_{major}{minor}"
    return ", ".join((where, *what))


@cache
def _kept(path: str) -> dict[str, tuple[int, int]]:
    return read(Path(path)) if path and Path(path).exists() else {}


def read(path: Path) -> dict[str, tuple[int, int]]:
    """Tiles in a file.

    Raises:
        ValueError: it is no file that `write` has written.
    """
    try:
        rows = json.loads(path.read_text())
        return {str(name): (int(row["queries"]), int(row["warps"])) for name, row in rows.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{path} holds no tiles ({VARIABLE} names it): remove it and run msda_triton.tuning.tune again"
        ) from error


def write(path: Path, rows: dict[str, tuple[int, int]]) -> None:
    """Add tiles to a file; a reader sees the old file or the new one."""
    kept = read(path) if path.exists() else {}
    text = {name: {"queries": q, "warps": w} for name, (q, w) in sorted({**kept, **rows}.items())}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(text, indent=2) + "\n")
    beside.replace(path)
    _kept.cache_clear()
