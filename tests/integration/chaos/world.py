"""A folder with a small subject, the command line in it, and what must hold of its results."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from command_line import git

from repro.store import Ledger
from repro.store.model import PROVISIONAL

SMALL = Path(__file__).parent / "small_cells.py"
RATE = 0.4
"""Of the trials that fail; a seed's first random number decides."""
TRIALS = 50
COMMITS = 6
CULPRIT = 4
TEST = """\
import random
import time


def test_it():
    time.sleep(0.02)
    assert random.random() >= {rate}
"""
MATRIX = """\
subject: {path: subject, test_file: test_planted.py, test: test_it}
trials: {count: 20, block: 100}
limits: {memory: 600m, trial_timeout: 20s, startup_timeout: 3m}
profiles:
  cpu: {python: "3.11", torch: "2.13.0", triton: ["3.7.1"], cuda: cpu}
"""
TROUBLE = ("Traceback", "fault in the kit")
"""What no command may ever say."""


class BrokenError(AssertionError):
    """A promise that was not kept."""


@dataclass
class World:
    """A state folder and what runs in it.

    Args:
        home: holds the matrix and the subject.
        engine: `host` or `docker`.
        env: on top of this process's environment.
        state: the kit's folder.
        said: all that commands wrote to stderr.
        in_time: whether the harm came before the disturbed command had ended by itself.
    """

    home: Path
    engine: str = "host"
    env: dict[str, str] = field(default_factory=dict)
    state: Path = Path()
    said: list[str] = field(default_factory=list)
    in_time: bool = True

    def __post_init__(self) -> None:
        self.state = self.home / ".repro"
        (self.home / "subject").mkdir(parents=True)
        (self.home / "matrix.yaml").write_text(MATRIX)
        self._write("subject", RATE)

    def _write(self, folder: str, rate: float) -> None:
        (self.home / folder / "test_planted.py").write_text(TEST.format(rate=rate))

    def make_history(self) -> list[str]:
        """A repository whose test fails from one commit on; its commits, oldest first."""
        folder = self.home / "repository"
        folder.mkdir()
        git(folder, "init", "-q")
        commits = []
        for number in range(COMMITS):
            self._write("repository", RATE if number >= CULPRIT else 0.0)
            (folder / "notes").write_text(str(number))
            git(folder, "add", "-A")
            git(folder, "commit", "-qm", f"change {number}")
            commits.append(git(folder, "rev-parse", "HEAD"))
        return commits

    # Commands ----------------------------------------------------------------------------------------------

    def arguments(self, stage: str) -> list[str]:
        """The command of a stage."""
        more = {
            "matrix": ["--half-width", "0", "--trials", str(TRIALS), "--json"],
            "bisect": ["--axis", "commit", "--repo", "repository", "--json"],
            "diagnose": ["--json", "--budget", "5m"],
            "report": ["--json"],
        }.get(stage, [])
        return [stage, "--engine", self.engine, "--state", str(self.state), *more]

    def start(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Begin a command, in a session of its own: a kill of it reaches nothing else."""
        # In a pipe a command of many lines would wait for its reader; each has files of its own.
        number = len(list(self.home.glob("out-*")))
        with (self.home / f"out-{number}").open("w") as out, (self.home / f"err-{number}").open("w") as err:
            return subprocess.Popen(
                [sys.executable, str(SMALL), *arguments], cwd=self.home, stdout=out, stderr=err, text=True,
                start_new_session=True, env={**os.environ, **self.env, **(env or {})},
            )  # fmt: skip

    def end(self, process: subprocess.Popen[str], patience: float = 600) -> int:
        """Wait for a command; its status. What it said is checked."""
        try:
            status = process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
            raise BrokenError(f"a command did not end within {patience:.0f} s") from None
        said = "".join(path.read_text(errors="replace") for path in sorted(self.home.glob("err-*")))
        # A key pressed while Python itself starts meets nobody who could say it in words.
        starting = "KeyboardInterrupt" in said and "cli/__init__" not in said
        if any(word in said for word in TROUBLE) and not starting:
            raise BrokenError(f"a command said: {said[-1500:]}")
        self.said.append(said)
        return status

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run a command to its end: its status, and what it printed."""
        process = self.start(*arguments)
        status = self.end(process)
        return status, max(self.home.glob("out-*"), key=lambda path: int(path.name[4:])).read_text()

    def clear_output(self) -> None:
        """Forget what commands printed; a moment begins."""
        for path in [*self.home.glob("out-*"), *self.home.glob("err-*")]:
            path.unlink()

    # What is there -----------------------------------------------------------------------------------------

    def lines(self) -> dict[Path, list[bytes]]:
        """Every whole line of every block file."""
        found = {}
        for path in (self.state / "blocks").glob("*/records.jsonl"):
            found[path] = path.read_bytes().rpartition(b"\n")[0].splitlines()
        return found

    def ends(self) -> list[tuple[int, str]]:
        """Seed and outcome of every trial that ended and says something of the test, as often as it ran."""
        with Ledger.open(self.state / "ledger.sqlite") as ledger:
            ledger.catch_up()
            trials = list(ledger.trials(repeats=True))
        return [(each.seed, each.outcome.value) for each in trials if each.outcome not in PROVISIONAL]

    def trial_processes(self) -> list[int]:
        """Processes that run trials of this state folder."""
        return self.processes(b"repro_trial")

    def processes(self, word: bytes = b"") -> list[int]:
        """Processes with this state folder, and a word, in their command line: of the kit, or begun by it."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if word in line and str(self.state).encode() in line:
                found.append(int(folder.name))
        return found

    def notes(self) -> list[Path]:
        """Notes of trial processes that were started and not seen off."""
        return list((self.state / "running").glob("*.json"))

    def kill_trials(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Kill the trial processes; how many there were."""
        found = self.trial_processes()
        for pid in found:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        return len(found)

    # What must hold ----------------------------------------------------------------------------------------

    def check_kept(self, before: dict[Path, list[bytes]]) -> None:
        """Nothing that was recorded is lost or changed."""
        now = self.lines()
        for path, every in before.items():
            promise(now.get(path, [])[: len(every)] == every, f"{path.parent.name} lost or changed lines")

    def check_matrix(self, killed: int) -> None:
        """Every seed once, with the outcome that it has, and the ledger says so.

        Args:
            killed: trials that may have ended in a crash, since they were killed.
        """
        ends = self.ends()
        seeds = Counter(seed for seed, _ in ends)
        wanted = range(TRIALS)
        promise(sorted(seeds) == list(wanted), f"seeds missing or too many: {_strange(seeds, wanted)}")
        twice = {seed: number for seed, number in seeds.items() if number > 1}
        promise(not twice, f"seeds that ran twice: {twice}")
        wrong = [each for each in ends if each[1] != outcome_of(each[0])]
        promise(all(outcome == "CRASHED" for _, outcome in wrong), f"wrong outcomes: {wrong}")
        promise(len(wrong) <= killed, f"{len(wrong)} crashed, {killed} were killed")
        told = self.check_tallies()
        promise(told == len(wanted), f"the ledger holds {told} of {len(wanted)} trials")

    def check_tallies(self) -> int:
        """The ledger's tallies are those of its trials; how many trials they hold."""
        with Ledger.open(self.state / "ledger.sqlite") as ledger:
            tallies = {tally.series: dict(tally.counts) for tally in ledger.tallies()}
            promise(tallies == ledger.recount(), "tallies differ from the trials")
        return sum(sum(counts.values()) for counts in tallies.values())

    def check_nothing_runs(self) -> None:
        """No process of a trial is left, and none is noted."""
        until(lambda: not self.trial_processes(), "a trial's process is left")
        promise(not self.notes(), f"noted as running: {self.notes()}")


def outcome_of(seed: int) -> str:
    """What the planted test comes to with a seed."""
    return "FAILED" if random.Random(seed).random() < RATE else "PASSED"


def promise(kept: bool, what: str) -> None:
    """Raise BrokenError with `what` unless it is kept."""
    if not kept:
        raise BrokenError(what)


def until(condition, what: str, patience: float = 20.0) -> None:
    """Wait for a condition; BrokenError where it does not come."""
    deadline = time.monotonic() + patience
    while not condition():
        promise(time.monotonic() < deadline, what)
        time.sleep(0.02)


def _strange(seeds: Sequence[int], wanted: range) -> list[int]:
    return sorted(set(seeds) ^ set(wanted))[:10]
