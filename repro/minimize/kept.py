"""The smallest case that an earlier search left, as it can be run again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.bisect.kept import Inputs
from repro.errors import NotReproducedError
from repro.subject import Subject

FILE = "minimized.json"
"""Below the state: the smallest case that was found last."""


@dataclass(frozen=True, kw_only=True)
class KeptCase:
    """A case that fails every time.

    Args:
        cell: id of the cell that it fails in.
        seed: of its trial.
        inputs: what the trial draws, or None where the seed says it all.
        request: what a request says of the case.
    """

    cell: str
    seed: int
    inputs: Inputs | None
    request: Mapping[str, object]


def kept_case(state: Path, subject: Subject) -> KeptCase:
    """The smallest case of a subject's test.

    Raises:
        NotReproducedError: there is none, it is one of other code, or it fails by chance.
    """
    try:
        found = json.loads((state / FILE).read_text(encoding="utf-8"))
        if (found["test"], found["subject"]) == (subject.test, subject.revision) and found[
            "seed"
        ] is not None:
            return _case(state, found)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise NotReproducedError(
        f"there is no smallest case of {subject.test} that fails every time",
        why="it was not looked for, or with other code, or the failure comes by chance",
        next_step="repro minimize",
    )


def _case(state: Path, found: Mapping[str, Any]) -> KeptCase:
    inputs = None
    if found["inputs"] is not None:
        file = state / "inputs" / Path(str(found["inputs"])).name
        file.stat()
        inputs = Inputs(seed=int(found["seed"]), identity=int(file.stem[:15], 16), file=file)
    return KeptCase(
        cell=str(found["cell"]),
        seed=int(found["seed"]),
        inputs=inputs,
        request={"arguments": dict(found["arguments"]), "constants": dict(found["constants"])},
    )
