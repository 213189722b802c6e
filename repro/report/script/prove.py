"""Writes the script and runs it in a cell; what is printed in a report is what ran."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from repro.engines.base import Exit, Job, Prepared
from repro.report.model import Proof
from repro.report.script.text import Plan, Subject, script_text
from repro.run import Order, Runner, Target
from repro.stats import Rate
from repro.store.bounded import Failing
from repro.trial.plain import read_plain
from repro.ui import count, shown

MOST_TRIALS = 300
"""Runs of the test that a script makes, at most."""

POLL_SECONDS = 0.05

_CALLING = Path(__file__).with_name("calling.py")
"""Not imported: it needs what only a cell has."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """The failure that a script has to show.

    Args:
        failing: trials of one cell that failed alike, one a seed.
        rate: of the cell.
        versions: what the cell imported.
        clean: takes out of a text what identifies; the script promises a line as far as that leaves it.
    """

    failing: Sequence[Failing]
    rate: Rate
    versions: Sequence[str]
    clean: Callable[[str], str] = str


class _Refusal(Exception):  # noqa: N818
    """Why no script shows the failure."""


def prove(
    runner: Runner,
    target: Target,
    prepared: Prepared,
    case: Case,
    *,
    gpu: int | None,
    clock: Callable[[], float],
) -> Proof:
    """Write a script that shows the failure and run it in the cell: with one seed first, then more often.

    Raises:
        NotReadyError: the engine or the GPU is not there.
    """
    proof = Proof(cell=target.cell.id, gpu=case.failing[0].series.gpu)
    bench = _Bench(runner, target, prepared, gpu, clock)
    try:
        call = bench.call(case.failing[0].seed)
        return _first_that_shows(bench, call, case, proof)
    except _Refusal as refusal:
        return replace(proof, refused=str(refusal))


def _first_that_shows(bench: _Bench, call: dict[str, Any], case: Case, proof: Proof) -> Proof:
    about = _about(bench.target, case)
    for plan in _plans(case):
        try:
            text = script_text(about, call, plan)
        except ValueError as error:
            raise _Refusal(str(error)) from None
        ran = bench.run(text, plan.trials)
        proof = replace(proof, script=text, status=ran.status, printed=ran.printed, seconds=ran.seconds)
        if ran.status == 1:
            return proof
        if ran.status != 0:
            return replace(
                proof, refused=f"the script ended with status {ran.status} instead of showing the failure"
            )
    times = count(plan.trials, "time")
    return replace(proof, refused=f"it ran the test {times}, and the failure did not show")


def _plans(case: Case) -> Iterator[Plan]:
    """One failing seed; then a few of them, often enough to see a failure of this rate in 99 % of cases."""
    seeds = list(dict.fromkeys(trial.seed for trial in case.failing))
    yield Plan(seeds=seeds[:1])
    low = min(max(case.rate.low, 1e-6), 0.999)
    wanted = math.ceil(math.log(0.01) / math.log1p(-low))
    few = seeds[:5]
    yield Plan(seeds=few, tries=max(2, min(wanted, MOST_TRIALS) // len(few)))


def _about(target: Target, case: Case) -> Subject:
    first, subject, cell = case.failing[0], target.subject, target.cell
    in_test = first.signature.get("file") == Path(subject.test_file).name
    source = str(first.signature.get("source") or "") if in_test else ""
    interpreted = {} if cell.on_gpu else {"TRITON_INTERPRET": "1"}
    return Subject(
        test=subject.test,
        test_file=subject.test_file,
        revision=subject.revision,
        python_path=subject.python_path,
        environment={**interpreted, **dict(cell.env)},
        versions=case.versions,
        exception=str(first.signature.get("exception") or subject.signature.exception),
        source=_unchanged(source, case.clean(source)),
    )


def _unchanged(text: str, clean: str) -> str:
    """The beginning that two texts share."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(text, clean, strict=False))
    return "".join(letter for letter, _ in pairs)


@dataclass(frozen=True)
class _Ran:
    status: int | None
    printed: str
    seconds: float


class _Bench:
    """Runs files of ours in a cell, as trials run: with the subject, its path and its caches."""

    def __init__(
        self, runner: Runner, target: Target, prepared: Prepared, gpu: int | None, clock: Callable[[], float]
    ) -> None:
        self.target = target
        self._runner, self._prepared, self._gpu, self._clock = runner, prepared, gpu, clock

    def call(self, seed: int) -> dict[str, Any]:
        """How the test is called, as `calling.py` finds out in the cell.

        Raises:
            _Refusal: it cannot be called without pytest.
        """
        job, inside = self._job(seed)
        shutil.copyfile(_CALLING, job.records / "calling.py")
        out = job.records / "call.json"
        self._wait(job, [f"{inside}/calling.py", f"{inside}/request.json", f"{inside}/call.json"], 1)
        told = _object(out)
        if "statements" not in told:
            why = told.get("refused") or f"it could not be collected; see {job.records.name}/output.log"
            raise _Refusal(f"the test cannot be called without pytest: {why}")
        return dict(told)

    def run(self, text: str, trials: int) -> _Ran:
        """Run a script; its status, None where it had to be ended."""
        job, inside = self._job(0)
        (job.records / "script.py").write_text(text, encoding="utf-8")
        own = self.target.subject.own_test_file
        given = [] if own is None else [str(own) if self._local else f"/extra/{own.name}"]
        began = self._clock()
        ended = self._wait(job, [f"{inside}/script.py", *given], trials)
        printed = shown(read_plain(job.records / "output.log").decode("utf-8", "replace"))
        return _Ran(ended.code if ended else None, printed, self._clock() - began)

    @property
    def _local(self) -> bool:
        return self._runner.engine.name != "docker"

    def _job(self, seed: int) -> tuple[Job, str]:
        """A job with a folder of its own, and that folder as the process sees it."""
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        folder = self._runner.state / "scripts" / f"{stamp}-{os.urandom(4).hex()}"
        folder.mkdir(parents=True)
        job = self._runner.job(
            folder, self.target, self._prepared, Order(seeds=[seed], gpu=self._gpu, keep_inputs=0)
        )
        return job, str(folder.resolve()) if self._local else "/records"

    def _wait(self, job: Job, words: Sequence[str], trials: int) -> Exit | None:
        """How a process ended; None where it took too long and was ended."""
        python = self._prepared.handle if self._local else "python3"
        limits = job.limits
        until = self._clock() + limits.startup_timeout + min(trials * limits.trial_timeout, 600.0)
        with self._runner.engine.start(self._prepared, replace(job, command=[python, *words])) as running:
            while (ended := running.poll()) is None and self._clock() < until:
                if self._runner.stop.wait(POLL_SECONDS):
                    raise KeyboardInterrupt
        return ended


def _object(path: Path) -> dict[str, Any]:
    """What a process of the subject told, where it told anything of use."""
    try:
        held = json.loads(read_plain(path))
    except (ValueError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}
