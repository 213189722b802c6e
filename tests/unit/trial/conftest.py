"""Runs planted subjects as the kit does: the plugin copied as `repro_trial`, a request file, a process."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import repro.trial

PACKAGE = Path(repro.trial.__file__).parent


@dataclass
class Done:
    """A block that was run."""

    folder: Path
    events: list
    status: int
    stderr: str

    def of(self, kind):
        return [event for event in self.events if event["event"] == kind]

    @property
    def outcomes(self):
        return [event["outcome"] for event in self.of("end")]


@pytest.fixture(scope="session")
def kit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit")
    shutil.copytree(PACKAGE, folder / "repro_trial", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def run_block(kit, tmp_path):
    """Write files, run a block over a test of them."""
    count = iter(range(100))

    def run(files, test="test_it", *, python=sys.executable, env=None, prefix=(), **request):
        root = tmp_path / "subject"
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        records = tmp_path / f"records{next(count)}"
        records.mkdir()
        asked = {"root": str(root), "test_file": "test_subject.py", "test": test, "records": str(records)}
        (records / "request.json").write_text(json.dumps({**asked, "seeds": [1, 2, 3], **request}))
        environment = {**os.environ, "PYTHONPATH": str(kit), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            [python, *prefix, "-m", "repro_trial", str(records / "request.json")],
            env={**environment, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        path = records / "records.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return Done(records, [json.loads(line) for line in lines], done.returncode, done.stderr)

    return run
