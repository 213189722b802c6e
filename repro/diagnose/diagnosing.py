"""From the ledger over experiments to a diagnosis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from repro.diagnose.advice import advise
from repro.diagnose.causes import weigh_all
from repro.diagnose.evidence import CellRate, Evidence
from repro.diagnose.experiments import SEEDS, WATCHED, Experiments
from repro.diagnose.model import Diagnosis
from repro.diagnose.shots import Range
from repro.diagnose.smallest import smallest_case
from repro.diagnose.tolerances import curve
from repro.diagnose.words import conclude
from repro.engines.base import Say
from repro.errors import NotReproducedError
from repro.run import Order, Runner, Target
from repro.stats import mcnemar, rate_ruled_out
from repro.store import Ledger, Series, Tally
from repro.trial.records import Mode, Outcome


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked.

    Args:
        target: cell and code under test.
        gpu: index of the GPU to use, or None.
        trials: of the ledger, at most, before the failure counts as not reproduced.
        block: trials of one process.
        budget: seconds, over which no further experiment begins.
        env: environment variables that matrix.yaml varies, with their values.
        adapter: file that knows the operator, or None.
    """

    target: Target
    gpu: int | None
    trials: int
    block: int
    budget: float
    env: Sequence[tuple[str, str]] = ()
    adapter: Path | None = None


def diagnose(runner: Runner, question: Question, *, clock: Callable[[], float], say: Say) -> Diagnosis:
    """Find failing trials, run experiments on them, and weigh every suspected cause.

    Raises:
        NotReproducedError: it never failed as it should.
        Interrupted, NotReadyError, BuildError: as `Runner.run`.
    """
    began, target = clock(), question.target
    prepared = runner.prepare(target)
    fire = Range(runner=runner, target=target, prepared=prepared, gpu=question.gpu)
    series = runner.series(target.cell, target.subject.revision, target.subject.test, gpu=question.gpu)
    _reproduce(fire, question, series, say)
    evidence = _from_ledger(runner.ledger, series)
    experiments = Experiments(
        range=fire,
        evidence=evidence,
        env=question.env,
        adapter=question.adapter,
        deadline=began + question.budget,
        clock=clock,
        say=say,
    )
    evidence = experiments.run()
    causes = weigh_all(evidence)
    return Diagnosis(
        test=target.subject.test,
        cell=target.cell.id,
        revision=target.subject.revision,
        failed=evidence.failed,
        trials=evidence.trials,
        causes=causes,
        conclusion=conclude(evidence, causes),
        advice=advise(evidence, causes),
        experiments=experiments.done,
        seconds=clock() - began,
        predicted_rate=evidence.predicted_rate,
        jumps=evidence.jumps,
        tolerances=curve(evidence),
        minimized=smallest_case(runner.state, target.subject),
    )


def _reproduce(fire: Range, question: Question, series: Series, say: Say) -> None:
    """Run trials until enough of them failed, beside those that the ledger holds."""
    ledger = fire.runner.ledger
    while True:
        tally = ledger.tally(series)
        tried = sum(tally.counts.values())
        if tally.failed >= SEEDS and tally.n >= min(question.trials, WATCHED // 2):
            return
        if tried >= question.trials:
            break
        count = min(question.block, question.trials - tried)
        say(f"{tried} trials so far; {count} more")
        done = ledger.done_seeds(series)
        seeds = [seed for seed in range(count + len(done)) if seed not in done][:count]
        ran = fire.runner.run(fire.target, fire.prepared, Order(seeds=seeds, gpu=question.gpu))
        ran.require(f"the trials of {fire.target.cell.id} could not run", resumes=True)
        if ran.ended < count:
            break
    if not tally.failed:
        raise _never(tally, question)


def _never(tally: Tally, question: Question) -> NotReproducedError:
    test, cell = question.target.subject.test, question.target.cell.id
    if not tally.n:
        others = [f"{count} x {outcome.value}" for outcome, count in tally.others.items()]
        told = ", ".join(others) or "nothing ran"
        return NotReproducedError(
            f"{test} neither passed nor failed in {cell}: {told}",
            why="the test is missing, skips itself, or fails otherwise than the signature says",
            next_step="repro matrix, which shows the messages",
        )
    return NotReproducedError(
        f"{test} failed in none of {tally.n} trials in {cell}: there is nothing to diagnose",
        why=f"a rate of {100 * rate_ruled_out(tally.n):.2g} % or more would have shown, with 95 % confidence",
        next_step=f"repro diagnose --trials {10 * question.trials}, or --only with a cell where it fails",
    )


def _from_ledger(ledger: Ledger, wanted: Series) -> Evidence:
    failed, passing, clean, known = [], [], None, 0
    for trial in ledger.trials(
        cell=wanted.cell, revision=wanted.revision, test=wanted.test, mode=Mode.SEEDS, gpu=wanted.gpu
    ):
        if trial.outcome is Outcome.FAILED:
            failed.append(trial)
        elif trial.outcome is Outcome.PASSED:
            known += 1
            passing.append(trial.seed)
            clean = _larger(clean, trial.comparisons)
    return Evidence(
        failed=len(failed),
        trials=len(failed) + known,
        failing=[trial.seed for trial in failed[:SEEDS]],
        passing=passing[: WATCHED - SEEDS],
        recorded=failed[:200],
        clean_ratio=clean,
        cells=_cells(ledger, wanted),
    )


def _larger(clean: float | None, comparisons: Sequence[dict[str, object]]) -> float | None:
    ratios = [float(str(one["ratio"])) for one in comparisons if "ratio" in one]
    known = [ratio for ratio in ratios if math.isfinite(ratio)]
    return max([*known, *([] if clean is None else [clean])], default=None)


def _cells(ledger: Ledger, wanted: Series) -> list[CellRate]:
    """The other cells in which the same test ran, held against this one seed by seed."""
    found = []
    for tally in ledger.tallies(revision=wanted.revision, test=wanted.test, mode=Mode.SEEDS):
        if tally.series == wanted or tally.series.gpu != wanted.gpu or not tally.n:
            continue
        pairs = ledger.paired(wanted, tally.series)
        found.append(
            CellRate(
                cell=tally.series.cell,
                failed=tally.failed,
                trials=tally.n,
                common=pairs.both + pairs.a_only + pairs.b_only + pairs.neither,
                differ=pairs.a_only + pairs.b_only,
                chance=mcnemar(pairs.a_only, pairs.b_only),
            )
        )
    return found
