"""The whole question: one search along a line, and what a reader asks next about its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from repro import ui
from repro.bisect import replaying, split
from repro.bisect.answer import Answer
from repro.bisect.commits import CommitLine
from repro.bisect.hunt import hunt
from repro.bisect.journal import Journal
from repro.bisect.lines import Line, VersionLine
from repro.bisect.names import TestNames
from repro.bisect.question import Question
from repro.bisect.result import Everywhere, Result, to_json
from repro.bisect.split import Split
from repro.bisect.trail import Trail
from repro.bisect.tryout import Tryout
from repro.engines.base import Say
from repro.run import Runner, build_threads
from repro.seeded import own_seeds
from repro.stacks import stacks
from repro.subject import Commit, Touched, merged_commits, touched

About = Mapping[str, object]
"""What a search is about, beside its axis and its test: names its journal."""

BUILDERS = 2
"""Candidates that are prepared at a time: what is asked for now, and what may be asked for next."""


@dataclass(kw_only=True)
class Investigation:
    """Searches lines of candidates.

    Args:
        runner: runs the trials.
        question: what is asked.
        gpu: index of the GPU to use, or None.
        say: takes lines of progress.
        earlier: names that the test had.
        fresh: leave out of account what the ledger held before.
        clock: seconds, monotonic.
    """

    runner: Runner
    question: Question
    gpu: int | None
    say: Say
    earlier: Sequence[str] = ()
    fresh: bool = False
    clock: Callable[[], float] = time.monotonic
    _began: float = field(default=0.0)

    def versions(self, line: VersionLine, about: About) -> Result:
        """Search the versions of an axis; split the change of a release into its parts.

        Raises:
            Interrupted, NotReadyError: as `Runner.run`; the same call goes on from there.
        """
        self._began = self.clock()
        with self._trail(line, about) as trail:
            answer = self._with_own_seeds(hunt(trail), line)
            everywhere = self._everywhere(trail, answer)
            parts = self._split(trail, line, answer)
            if everywhere is not None:
                answer = replace(answer, seen=trail.evidence.seen(), trials=trail.tryout.trials)
        result = Result(answer=answer, split=parts, everywhere=everywhere, seconds=self.clock() - self._began)
        self._journal(line, about).answer(to_json(result))
        return result

    def commits(self, line: CommitLine, about: About, *, old: str, inside_merges: bool = False) -> Result:
        """Search the commits of a history; go into merges where that is asked for.

        Args:
            old: the commit that the whole search begins with.

        Raises:
            Interrupted, NotReadyError: as `Runner.run`; the same call goes on from there.
        """
        self._began = self._began or self.clock()
        with self._trail(line, about) as trail:
            answer = self._with_own_seeds(hunt(trail), line)
        place = answer.first_bad
        commit = None if place is None else line.commits[place]
        result = Result(
            answer=answer,
            touched=None if commit is None else self._touched(line, commit),
            link=_link(line, answer),
            seconds=self.clock() - self._began,
        )
        if commit is not None and commit.is_merge and inside_merges:
            result = replace(result, inside=self._inside(line, commit, about, old))
        self._journal(line, about).answer(to_json(result))
        return result

    def _with_own_seeds(self, answer: Answer, line: Line) -> Answer:
        """Note that the test seeds itself, where the newest candidate shows that."""
        newest = len(line.candidates) - 1
        series = line.series(newest)
        if series is None:
            return answer
        revision, test = series
        told = own_seeds(
            self.runner.ledger,
            self.runner.state,
            cell=line.candidates[newest].cell.id,
            revision=revision,
            test=test,
        )
        return replace(answer, notes=[*answer.notes, told]) if told else answer

    # What is asked next ----------------------------------------------------------------------------------

    def _everywhere(self, trail: Trail, answer: Answer) -> Everywhere | None:
        if answer.kind != "throughout" or answer.method != "replay":
            return None
        fails, ran, same = replaying.everywhere(trail, trail.inputs)
        return Everywhere(inputs=len(trail.inputs), fails=fails, ran=ran, same_elements=same)

    def _split(self, trail: Trail, line: VersionLine, answer: Answer) -> Split | None:
        if line.axis != "release" or answer.first_bad is None or answer.low is None:
            return None
        old, new = (line.candidates[place].cell for place in (answer.low, answer.first_bad))
        found = split.crosses(old, new, stacks(), split.ptxas_of(self.runner.ledger))
        if not found:
            return None
        before = trail.evidence.pooled(0, answer.low)
        after = trail.evidence.pooled(answer.first_bad, len(line.candidates))
        crossed = split.cross_line(line, found)
        with self._trail(crossed, {"axis": "crossed", "subject": line.subject.revision}) as between:
            between.learn()
            judged = [split.judge(between, place, before, after, cross) for place, cross in enumerate(found)]
        return split.conclude(judged)

    def _touched(self, line: CommitLine, commit: Commit) -> Touched:
        subject = line.checkout.subject(commit.id)
        return touched(
            line.checkout.repository,
            commit,
            test_file=subject.test_file,
            python_path=subject.python_path,
        )

    def _inside(self, line: CommitLine, merge: Commit, about: About, old: str) -> Result | None:
        """Search what a merge brought in: the first of its lines whose tip differs from where it forked."""
        for commits in merged_commits(line.checkout.repository, merge, old):
            if len(commits) < 2:
                continue
            self.say(f"inside the merge {merge.short[:10]}: {ui.count(len(commits) - 1, 'commit')}")
            found = self.commits(line.inside(commits), about, old=commits[0].id, inside_merges=True)
            if found.answer.kind in ("appears", "rises", "falls"):
                return found
        return None

    # Parts -----------------------------------------------------------------------------------------------

    @contextmanager
    def _trail(self, line: Line, about: About) -> Iterator[Trail]:
        journal = self._journal(line, about)
        if isinstance(line, CommitLine):
            line.earlier = {**journal.series, **line.earlier}
        with build_threads(BUILDERS) as pool:
            yield Trail(
                self._tryout(line, pool),
                replace(self.question, budget=self._left()),
                say=self.say,
                clock=self.clock,
                journal=journal,
            )

    def _journal(self, line: Line, about: About) -> Journal:
        return Journal.open(self.runner.state, {**about, "axis": line.axis, "test": line.test})

    def _left(self) -> float | None:
        budget = self.question.budget
        return None if budget is None else max(0.0, budget - (self.clock() - self._began))

    def _tryout(self, line: Line, pool: ThreadPoolExecutor) -> Tryout:
        names = None
        if self.earlier:
            names = TestNames(
                earlier=[name.rpartition(".py::")[2] for name in self.earlier],
                tests=lambda target, prepared: self.runner.list_tests(target, prepared, "*"),
            )
        return Tryout(
            self.runner, line, gpu=self.gpu, pool=pool, clock=self.clock, fresh=self.fresh, names=names
        )


def _link(line: CommitLine, answer: Answer) -> str:
    """The web page that compares both sides of the change."""
    url = line.checkout.repository.url
    if url is None or answer.low is None or answer.high is None:
        return ""
    return f"{url}/compare/{answer.name(answer.low)}...{answer.name(answer.high)}"
