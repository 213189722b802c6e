"""The smallest case that fails, as `repro minimize` left it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro.subject import Subject

ELEMENTS = 16


def smallest_case(state: Path, subject: Subject) -> list[str]:
    """What it is made of, a line each; nothing where none was looked for, or for other code."""
    try:
        found = json.loads((state / "minimized.json").read_text(encoding="utf-8"))
        same = (found["test"], found["subject"]) == (subject.test, subject.revision)
        return list(_lines(found)) if same else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _lines(found: dict[str, Any]) -> Iterator[str]:
    for change in found["changes"]:
        yield f"{change['name']}: {change['to']}, and {change['from']} at first"
    if found.get("left") is not None:
        yield f"{found['left']} of {found['drawn']} drawn numbers are not 0"
    for one in found.get("elements", [])[:ELEMENTS]:
        yield f"draw {one['draw']} ({one['op']}) {one['index']} = {one['value']:.9g}"
    yield from map(str, (found.get("gradients") or {}).get("said", ())[:ELEMENTS])
