"""Subjects with one planted cause each, as tests/planted holds them."""

from __future__ import annotations

import re
from pathlib import Path

PLANTED = Path(__file__).parents[1] / "planted"
MATRIX = """\
subject: {path: subject, test_file: test_planted.py, test: test_it}
trials: {count: 100, block: 100}
limits: {memory: 1500m, trial_timeout: 20s, startup_timeout: 3m}
profiles:
  cpu:
    {python: "3.11", torch: "2.13.0", triton: pinned, cuda: cpu, env: [{}, {TRITON_DEFAULT_FP_FUSION: "0"}]}
"""


def names() -> list[str]:
    """Every planted subject."""
    return sorted(path.stem for path in PLANTED.glob("*.py") if path.stem != "decoys")


def cause(name: str) -> str:
    """The cause that is planted in a subject; "" in the clean one."""
    found = re.search(r'^CAUSE = "(.*)"$', (PLANTED / f"{name}.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def plant(home: Path, name: str, *, decoys: bool) -> None:
    """Make a folder with a matrix and a subject.

    Args:
        home: the folder.
        name: of the subject.
        decoys: whether the test also does what looks suspicious and is not.
    """
    subject = home / "subject"
    subject.mkdir()
    text = (PLANTED / f"{name}.py").read_text().replace("DECOYS = False", f"DECOYS = {decoys}")
    (subject / "test_planted.py").write_text(text)
    (subject / "decoys.py").write_text((PLANTED / "decoys.py").read_text())
    (home / "matrix.yaml").write_text(MATRIX)
