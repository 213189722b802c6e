"""`repro bisect` beside the real `git bisect run` and `git bayesect run`, on the same repositories.

    python -m benchmarks.git_bisect run --rows "repro|k=10|bayesect"   # adds to docs/bisect/results.json
    python -m benchmarks.git_bisect report                             # docs/bisect.md's tables

Each run has a generated repository with its culprit at another place, and all methods search it one after
another. A peer tries by one pytest process a trial. Needs `git-bayesect`, torch, triton and pytest in the
interpreter that runs this, best one without further pytest plugins and with its packages' bytecode compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median

from repro.stats import wilson

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from histories import History, Noise, kernel_change  # noqa: E402

RESULTS = ROOT / "docs" / "bisect" / "results.json"
PAGE = ROOT / "docs" / "bisect.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
LENGTH = 64
CAP = 400
"""Tests that `git bayesect run` may take."""
STEPS = ((0.0, 0.3), (0.05, 0.3))
REPRO = (sys.executable, "-c", "from repro.cli import main; main()")
MATRIX = """\
subject: {path: repository, test_file: tests/test_rows.py, test: test_backward}
trials: {count: 120}
limits: {memory: 1500m, trial_timeout: 20s, startup_timeout: 3m}
profiles:
  cpu: {python: "3.11", torch: "2.13.0", triton: pinned, cuda: cpu}
"""
TRIAL = """\
#!/bin/sh
# Up to {repeats} pytest processes, one a trial; the first failure makes the commit bad.
commit=$(git rev-parse HEAD)
for _ in $(seq {repeats}); do
    echo "$commit" >> {counter}
    [ "$(wc -l < {counter})" -gt {cap} ] && kill -INT $PPID
    {python} -m pytest -q -x -p no:cacheprovider {test} > {log} 2>&1
    code=$?
    [ $code -gt 1 ] && exit 125
    [ $code -eq 1 ] && exit 1
done
exit 0
"""


@dataclass(frozen=True)
class Row:
    """What came of one search.

    Args:
        named: the commit that it names, or None.
        culprit: the true one.
        trials: runs of the test that passed or failed.
        processes: that ran them.
        commits: distinct commits that were tried.
        wall: seconds until the answer, without making the repository or its clone.
        cpu: seconds of processor time, user and system, of all processes together.
        status: exit code.
    """

    named: str | None
    culprit: str
    trials: int
    processes: int
    commits: int
    wall: float
    cpu: float
    status: int

    @property
    def right(self) -> bool:
        """Whether the commit that it names is the culprit."""
        return self.named == self.culprit


@dataclass(frozen=True)
class Found:
    """A search's answer and what it counted; see `Row`."""

    named: str | None
    trials: int
    processes: int
    commits: int
    status: int


@dataclass(frozen=True)
class Place:
    """The folder of one search: `history` is not to be changed by it.

    Args:
        folder: of its own, empty but for a matrix.yaml.
        history: the repository, and the truth about it.
        old, new: the rates before and after.
    """

    folder: Path
    history: History
    old: float
    new: float

    @property
    def ends(self) -> tuple[str, str]:
        """The oldest and the newest commit."""
        return self.history.commits[0], self.history.commits[-1]

    def call(self, *command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; plugins that pytest would load cost every peer's trial time."""
        environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            list(map(str, command)),
            cwd=cwd or self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def clone(self) -> Path:
        """A clone of the repository, at its newest commit."""
        self.call("git", "clone", "-q", self.history.path, "clone")
        return self.folder / "clone"

    def trial(self, repeats: int, cap: int = 10**9) -> Path:
        """The script that tries a commit. Nothing of the subject is cached: a stale module would lie."""
        script = self.folder / "trial.sh"
        names = {"counter": self.folder / "trials", "log": self.folder / "log", "python": sys.executable}
        names["test"] = Path(f"{self.history.test_file}::{self.history.test}")
        quoted = {name: shlex.quote(str(path)) for name, path in names.items()}
        script.write_text(TRIAL.format(repeats=repeats, cap=cap, **quoted))
        script.chmod(0o755)
        return script

    def counted(self) -> tuple[int, int]:
        """Trials that the script ran, and how many distinct commits they were of."""
        commits = (self.folder / "trials").read_text().split()
        return len(commits), len(set(commits))


# Methods ---------------------------------------------------------------------------------------------------


def repro(place: Place, *options: str) -> Callable[[], Found]:
    """`repro bisect` with an empty ledger."""
    old, new = place.ends
    command = [*REPRO, "bisect", "--axis", "commit", "--engine", "host", "--profile", "cpu"]
    command += ["--repo", str(place.history.path), "--old", old, "--new", new]
    command += ["--test", place.history.test, "--state", "state", "--json", *options]

    def search() -> Found:
        done = place.call(*command)
        if not done.stdout:
            raise RuntimeError(done.stderr)
        told = json.loads(done.stdout)
        return Found(
            named=told["first_bad"],
            trials=told["trials"],
            processes=len(list((place.folder / "state" / "blocks").iterdir())),
            commits=told["builds"],
            status=done.returncode,
        )

    return search


def git_bisect(place: Place, repeats: int) -> Callable[[], Found]:
    """`git bisect run` of pytest, repeated."""
    clone, script = place.clone(), place.trial(repeats)

    def search() -> Found:
        named, status = _git_bisect(place, clone, str(script))
        trials, commits = place.counted()
        return Found(named=named, trials=trials, processes=trials, commits=commits, status=status)

    return search


def check_commit(place: Place) -> Callable[[], Found]:
    """`git bisect run repro check-commit`, told both rates."""
    clone = place.clone()
    command = [*REPRO, "check-commit", "--rate", f"{place.new:g}", "--base-rate", f"{place.old:g}"]
    command += ["--matrix", str(place.folder / "matrix.yaml"), "--state", str(place.folder / "state")]
    command += ["--engine", "host", "--profile", "cpu"]

    def search() -> Found:
        named, status = _git_bisect(place, clone, *command)
        counted = re.findall(r"(\d+) of (\d+) failed$", (place.folder / "output").read_text(), re.MULTILINE)
        blocks = list((place.folder / "state" / "blocks").iterdir())
        trials = sum(int(ran) for _, ran in counted)
        return Found(named=named, trials=trials, processes=len(blocks), commits=len(counted), status=status)

    return search


def _git_bisect(place: Place, clone: Path, *command: str) -> tuple[str | None, int]:
    old, new = place.ends
    place.call("git", "bisect", "start", new, old, cwd=clone)
    done = place.call("git", "bisect", "run", *command, cwd=clone)
    (place.folder / "output").write_text(done.stdout)
    bad = place.call("git", "rev-parse", "refs/bisect/bad", cwd=clone).stdout.strip()
    return (None if done.returncode else bad), done.returncode


def git_bayesect(place: Place) -> Callable[[], Found]:
    """`git bayesect run` of one pytest process a test, until it is 95 % sure, or `CAP` tests."""
    clone, script = place.clone(), place.trial(1, CAP)
    bayesect = (sys.executable, "-m", "git_bayesect")

    def search() -> Found:
        old, new = place.ends
        place.call(*bayesect, "start", "--old", old, "--new", new, cwd=clone)
        done = place.call(*bayesect, "run", script, cwd=clone)
        found = re.search(r"^Bisection converged to ([0-9a-f]+) ", done.stdout, re.MULTILINE)
        named = found and place.call("git", "rev-parse", found[1], cwd=clone).stdout.strip()
        trials, commits = place.counted()
        return Found(
            named=named, trials=min(trials, CAP), processes=trials, commits=commits, status=done.returncode
        )

    return search


Method = Callable[[Place], Callable[[], Found]]


def methods(old: float) -> Iterator[tuple[str, Noise, Method]]:
    """(name, noise, function), the ones that matter most first.

    Whether a failure follows from the trial's seed is all the same to a peer: pytest sets no seed.
    """
    yield "repro bisect", "run", repro
    yield "git bisect k=10", "run", partial(git_bisect, repeats=10)
    yield "git bayesect", "run", git_bayesect
    if not old:
        yield "repro bisect, inputs replay", "inputs", repro
    yield "git bisect, check-commit", "run", check_commit
    if not old:
        yield "repro bisect --no-replay, inputs replay", "inputs", _no_replay
    for repeats in (5, 20, 1):
        yield f"git bisect k={repeats}", "run", partial(git_bisect, repeats=repeats)


def _no_replay(place: Place) -> Callable[[], Found]:
    return repro(place, "--no-replay")


# Runs ------------------------------------------------------------------------------------------------------


def one(old: float, new: float, noise: Noise, method: Method, run: int, home: Path) -> Row:
    """One search, in a repository whose culprit depends on the run's number alone."""
    culprit = random.Random(f"culprit {run}").randrange(1, LENGTH)
    path = home / "repository"
    history = kernel_change(path, old=old, new=new, noise=noise, culprit=culprit, length=LENGTH)
    folder = home / "search"
    folder.mkdir()
    (folder / "matrix.yaml").write_text(MATRIX)
    search = method(Place(folder, history, old, new))
    began, spent = time.monotonic(), _cpu()
    found = search()
    wall, cpu = time.monotonic() - began, _cpu() - spent
    assert history.culprit is not None
    return Row(**asdict(found), culprit=history.culprit, wall=round(wall, 2), cpu=round(cpu, 2))


def _cpu() -> float:
    """Processor seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def load() -> dict[str, list[dict[str, object]]]:
    """By row, its runs in order."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def run(args: argparse.Namespace) -> None:
    for old, new in STEPS:
        for number in range(args.runs):
            for name, noise, method in methods(old):
                key = f"{old:g}->{new:g} | {name}"
                if re.search(args.rows, key) and len(load().get(key, [])) <= number:
                    with tempfile.TemporaryDirectory(prefix="bisect-") as home:
                        row = one(old, new, noise, method, number, Path(home))
                    _add(key, row)
                    print(f"{key:45} {number:2} {'right' if row.right else 'wrong'} {row}", flush=True)


def _add(key: str, row: Row) -> None:
    done = load()
    done.setdefault(key, []).append(asdict(row))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{json.dumps(each)}: [\n{_lines(done[each])}\n]" for each in sorted(done)]
    draft = RESULTS.with_suffix(".part")
    draft.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    draft.replace(RESULTS)


def _lines(rows: list[dict[str, object]]) -> str:
    return ",\n".join(json.dumps(row) for row in rows)


# Report ----------------------------------------------------------------------------------------------------


def report(_: argparse.Namespace) -> None:
    head, _, rest = PAGE.read_text().partition(BEGIN)
    tail = rest.partition(END)[2]
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(_tables(load())) + "\n" + END + tail)


def _tables(done: dict[str, list[dict[str, object]]]) -> Iterator[str]:
    for old, new in STEPS:
        if not any(row.startswith(f"{old:g}->{new:g} |") for row in done):
            continue
        yield f"\nFailure rate {old:g} before the culprit, {new:g} from it on, {LENGTH} commits:\n"
        yield (
            "| method | right | 95 % interval | wrong | no name | trials: mean (median) | processes |"
            " commits | wall s: mean (median) | CPU s |"
        )
        yield "| --- |" + " --: |" * 9
        for name, _, _ in methods(old):
            rows = [Row(**row) for row in done.get(f"{old:g}->{new:g} | {name}", [])]
            if rows:
                yield _line(name, rows)


def _line(name: str, rows: list[Row]) -> str:
    right, silent = sum(row.right for row in rows), sum(row.named is None for row in rows)
    span = wilson(right, len(rows), 0.95)
    cells = (
        f"{right}/{len(rows)}",
        f"{100 * span.low:.0f} to {100 * span.high:.0f} %",
        f"{len(rows) - right - silent}",
        f"{silent}",
        _mean(row.trials for row in rows),
        f"{mean(row.processes for row in rows):.0f}",
        f"{mean(row.commits for row in rows):.0f}",
        _mean(row.wall for row in rows),
        f"{mean(row.cpu for row in rows):.0f}",
    )
    return f"| {name} | " + " | ".join(cells) + " |"


def _mean(values: Iterator[float]) -> str:
    found = list(values)
    return f"{mean(found):.0f} ({median(found):.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run")
    runner.add_argument("--runs", type=int, default=30)
    runner.add_argument("--rows", default=".", help="regular expression on '0->0.3 | git bisect k=10'")
    runner.set_defaults(call=run)
    commands.add_parser("report").set_defaults(call=report)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
