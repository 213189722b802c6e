"""The real command line over planted subjects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from repro.store import Ledger, Trial

REPRO = (sys.executable, "-c", "from repro.cli import main; main()")
MATRIX = """\
subject: {{path: subject, test_file: test_planted.py, test: {test}}}
trials: {{count: 20, block: 100}}
limits: {{memory: 600m, trial_timeout: 3s, startup_timeout: 3m}}
profiles:
  cpu: {{python: "3.11", torch: "2.13.0", triton: [{triton}], cuda: cpu}}
"""
SEED = """\
import random
SEEDS = {random.Random(seed).random(): seed for seed in range(1000)}
def seed():
    return SEEDS[random.random()]
"""
"""What a planted test begins with: the seed of its trial, read off the first number that is drawn."""


@dataclass
class Kit:
    """A folder with a matrix and a subject, and the command line in it."""

    home: Path
    state: Path

    def plant(self, code: str, *, test: str = "test_it", triton: str = '"3.7.1"') -> None:
        """Write the subject's one test file, and a matrix for it."""
        (self.home / "subject").mkdir(exist_ok=True)
        (self.home / "subject" / "test_planted.py").write_text(SEED + textwrap.dedent(code))
        (self.home / "matrix.yaml").write_text(MATRIX.format(test=test, triton=triton))

    def command(self, *arguments: object) -> list[str]:
        return [*REPRO, *map(str, arguments), "--state", str(self.state)]

    def ended(self, *arguments: object, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, whatever that is."""
        command = self.command(*arguments)
        return subprocess.run(
            command, cwd=self.home, capture_output=True, text=True, timeout=timeout, check=False
        )

    def run(self, *arguments: object, status: int = 0) -> str:
        """Run a command to its end; what it printed."""
        done = self.ended(*arguments)
        assert done.returncode == status, done.stderr
        return done.stdout

    def complaint(self, *arguments: object, status: int) -> str:
        """Run a command that has to end with a status; what it said on stderr."""
        done = self.ended(*arguments, timeout=300)
        assert done.returncode == status, done.stderr
        return done.stderr

    def matrix(self, *arguments: object, status: int = 0) -> dict[str, object]:
        told = json.loads(self.run("matrix", "--json", "--half-width", 0, *arguments, status=status))
        assert isinstance(told, dict)
        return told

    def outcomes(self, told: dict[str, object]) -> dict[str, dict[int, str]]:
        """By cell, what came of each seed of the subject that a run was about."""
        found: dict[str, dict[int, str]] = {}
        for trial in self._trials(told):
            found.setdefault(trial.series.cell, {})[trial.seed] = trial.outcome.value
        return found

    def messages(self, told: dict[str, object]) -> dict[int, str]:
        """What is recorded of each seed that did not pass."""
        return {trial.seed: trial.message for trial in self._trials(told)}

    def elsewhere(self, name: str, code: str) -> None:
        """Write a test file outside of the subject."""
        (self.home / "elsewhere").mkdir()
        (self.home / "elsewhere" / name).write_text(SEED + code)

    def _trials(self, told: dict[str, object]) -> list[Trial]:
        with Ledger.open(self.state / "ledger.sqlite") as ledger:
            return list(ledger.trials(revision=told["subject"]["revision"]))


def git(folder: Path, *arguments: str) -> str:
    """Run git with an identity of its own."""
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    environment = {**os.environ, **{f"GIT_{name}": "nobody@example.org" for name in names}}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.strip()
