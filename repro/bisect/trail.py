"""A search in progress: what is asked, what was seen, and the one way to see more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from repro import ui
from repro.bisect.answer import Belief
from repro.bisect.evidence import Evidence
from repro.bisect.journal import Journal
from repro.bisect.kept import Inputs
from repro.bisect.question import Find, Question
from repro.bisect.tryout import Counts, Finding, Tryout, Untestable
from repro.engines.base import Say
from repro.run import run_threads
from repro.store import Trial
from repro.trial.records import Outcome


class Trail:
    """What the parts of a search share.

    Args:
        tryout: tries candidates.
        question: what is asked.
        say: takes lines of progress.
        clock: seconds, monotonic.
        journal: remembers what the ledger does not.
    """

    def __init__(
        self,
        tryout: Tryout,
        question: Question,
        *,
        say: Say,
        clock: Callable[[], float],
        journal: Journal,
    ) -> None:
        self.tryout, self.question, self.say = tryout, question, say
        self.candidates = tryout.line.candidates
        self.low, self.high = 0, len(self.candidates) - 1
        self.evidence = Evidence()
        self.inputs: list[Inputs] = []
        self.notes: list[str] = []
        self.belief: list[Belief] = []
        self._clock, self._began, self._journal = clock, clock(), journal

    @property
    def failing(self) -> int:
        """The end that has to fail."""
        return self.high if self.question.find is Find.REGRESSION else self.low

    @property
    def other(self) -> int:
        """The end that should not, or not as often."""
        return self.low if self.question.find is Find.REGRESSION else self.high

    @property
    def left(self) -> float | None:
        """Seconds of the budget that are left, or None without one."""
        budget = self.question.budget
        return None if budget is None else budget - (self._clock() - self._began)

    @property
    def over(self) -> bool:
        """Whether the budget is spent."""
        return self.left is not None and self.left <= 0

    def label(self, index: int) -> str:
        """A candidate as a person reads it."""
        return self.candidates[index].label

    def note(self, told: str) -> None:
        """Keep a sentence for the answer, and say it now."""
        self.notes.append(told)
        self.say(told)

    def learn(self) -> None:
        """Take in what the ledger holds, and what earlier runs found untestable."""
        for index in range(len(self.candidates)):
            self.evidence.add(index, self.tryout.known(index))
            if replays := self.tryout.replayed(index):
                self.evidence.add_replays(index, replays)
        for finding in () if self.tryout.fresh else self._journal.findings(self.candidates):
            self.evidence.findings[finding.index] = finding

    def rate(self, index: int, trials: int) -> Counts | None:
        """Run further trials of a candidate with seeds of its own; None where it cannot be tested."""
        try:
            counts = self.tryout.rate(index, trials)
        except Untestable as untestable:
            self._untestable(untestable.finding)
            return None
        self._tried(index)
        self.evidence.add(index, counts)
        total = self.evidence.of(index)
        others = f", {ui.outcomes(total.others)}" if total.others else ""
        self.say(f"{self.label(index)}: {total.failed} of {total.rated} failed{others}")
        return counts

    def replay_until(self, index: int, inputs: Sequence[Inputs], rounds: int) -> None:
        """Run kept inputs at a candidate until each ran so often, earlier replays included."""
        ran = [self.evidence.replayed(index, [each.identity])[1] for each in inputs]
        if min(ran) < rounds:
            self.replay(index, inputs, rounds - min(ran))

    def replay(self, index: int, inputs: Sequence[Inputs], rounds: int) -> list[Trial] | None:
        """Run kept inputs at a candidate; None where it cannot be tested."""
        try:
            trials = self.tryout.replay(index, inputs, rounds)
        except Untestable as untestable:
            self._untestable(untestable.finding)
            return None
        self._take(index, trials)
        return trials

    def replay_side_by_side(
        self,
        indexes: Sequence[int],
        inputs: Sequence[Inputs],
        jobs: int,
        holds: Callable[[list[Trial]], bool],
    ) -> list[int]:
        """Run kept inputs once at several candidates at a time.

        Args:
            jobs: candidates at a time.
            holds: whether what came of a candidate's trials may be taken as it is.

        Returns:
            Candidates of which nothing was taken.
        """

        def one(index: int) -> list[Trial]:
            try:
                return [] if self.over else self.tryout.replay(index, inputs)
            except Untestable:
                return []

        self.tryout.prefetch(indexes)
        left = []
        with run_threads(self.tryout.runner.stop, jobs) as pool:
            for index, trials in zip(indexes, pool.map(one, indexes), strict=True):
                if trials and holds(trials):
                    self._take(index, trials)
                else:
                    left.append(index)
        return left

    def _take(self, index: int, trials: Sequence[Trial]) -> None:
        self._tried(index)
        self.evidence.add_replays(index, trials)
        failed = sum(trial.outcome is Outcome.FAILED for trial in trials)
        self.say(f"{self.label(index)}: {failed} of {len(trials)} replayed inputs failed")

    def _tried(self, index: int) -> None:
        subject = self.tryout.ready(index)[0].subject
        self._journal.tried(self.candidates[index], subject.revision, subject.test)

    def _untestable(self, finding: Finding) -> None:
        if finding.outcome is not Outcome.OTHER_INPUTS:
            self.evidence.findings[finding.index] = finding
            self._journal.untestable(self.candidates[finding.index], finding)
        self.say(f"{self.label(finding.index)}: cannot be tested: {finding.outcome.value}: {finding.message}")
