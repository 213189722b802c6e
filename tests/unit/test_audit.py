"""The audit of the lock files: a finding fails, an unreachable database is said and does not."""

import importlib.util
import json
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / ".ci" / "audit.py"
CLEAN = {"name": "click", "version": "8.5.1", "vulns": []}
BAD = {"name": "rich", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"], "aliases": []}]}
NONE = "requirements/kit.lock: no known vulnerability in 1 packages"
UNKNOWN = {"name": "uv", "skip_reason": "Dependency not found on PyPI and could not be audited: uv"}


@pytest.fixture(scope="module")
def audit():
    spec = importlib.util.spec_from_file_location("audit", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("packages", "status", "line"),
    [
        ([CLEAN, BAD], 1, "requirements/kit.lock: rich 1.0: PYSEC-1, fixed in 1.1"),
        ([CLEAN], 0, NONE),
        ([CLEAN, UNKNOWN], 0, f"{NONE}; 1 could not be looked up"),
        ([UNKNOWN, UNKNOWN], 0, "requirements/kit.lock: not checked: no advisory database reachable"),
    ],
)  # fmt: skip
def test_verdicts(audit, capsys, packages, status, line):
    assert audit.main(lambda _: (json.dumps({"dependencies": packages, "fixes": []}), "")) == status
    assert capsys.readouterr().out.splitlines()[0] == line


def test_a_database_that_does_not_answer(audit, capsys):
    assert audit.main(lambda _: ("", "Traceback\nConnectionError: no such host")) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "requirements/kit.lock: not checked: no advisory database reachable (ConnectionError: no such host)"
    )


def test_every_lock_file_is_audited(audit):
    asked = []
    audit.main(lambda arguments: (asked.append(arguments[-1]) or "", ""))
    locks = (FILE.parents[1] / "requirements").glob("*.lock")
    assert sorted(asked) == sorted(f"requirements/{lock.name}" for lock in locks)
