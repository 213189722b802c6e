"""The scripts that make the evidence: what a user may copy from them has to work."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
COPIES = re.compile(r"\bcp (-\w+ )?\.repro[\w-]* [^|`\n]*")
WRITTEN = [
    (path, found)
    for path in sorted([*DOCS.rglob("*.sh"), *DOCS.rglob("*.md")])
    for found in COPIES.finditer(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("path", "copy"), WRITTEN, ids=lambda one: getattr(one, "name", None))
def test_a_state_folder_is_copied_with_its_owners(path, copy):
    """Kernel caches in it belong to the containers' user; a copy of one's own cannot be written there."""
    assert copy[1] == "-a ", copy[0]


def test_copies_are_found():
    assert {path.name for path, _ in WRITTEN} >= {"run.sh", "offline-gpu-host.md"}
