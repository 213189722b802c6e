"""Whether the other tests of the file still pass: those that the fixed side fails run on both sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from repro import ui
from repro.engines.base import Say
from repro.run import Order
from repro.store.sound import read_sound_events
from repro.trial.records import Event, Outcome
from repro.verify.sides import Side

_AGAIN = 2
"""Runs of a test that failed, on each side, so that one that fails now and then is not laid to the fix."""

_FINE = (Outcome.PASSED, Outcome.SKIPPED)


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A test that passes as it is and fails every time on the fixed side.

    Args:
        test: its id inside the file.
        outcome: what its runs came to.
        message: what the last one said.
    """

    test: str
    outcome: Outcome
    message: str


@dataclass(frozen=True, kw_only=True)
class Beside:
    """The other tests of the file.

    Args:
        ran: how many ran on the fixed side.
        broken: those that the fix breaks.
        left: how many the budget left out.
    """

    ran: int = 0
    broken: tuple[Broken, ...] = ()
    left: int = 0


def others(as_is: Side, fixed: Side, *, say: Say, over: Callable[[], bool]) -> Beside:
    """Run the other tests of the test's file once on the fixed side; what fails there, on both, again.

    None of it enters the ledger.

    Args:
        say: takes lines of progress.
        over: whether the time is up.

    Raises:
        NotReadyError, Interrupted: as `Runner.run`.
    """
    tests = [test for test in _tests(fixed) if test != fixed.target.subject.test]
    say(f"{ui.count(len(tests), 'other test')} of the file, once on the fixed side")
    broken, ran = [], 0
    for test in tests:
        if over():
            break
        ran += 1
        found = _broken(as_is, fixed, test)
        if found is not None:
            say(f"{test}: passes as it is, {found.outcome.value} on the fixed side")
            broken.append(found)
    return Beside(ran=ran, broken=tuple(broken), left=len(tests) - ran)


def _tests(side: Side) -> list[str]:
    return side.runner.list_tests(side.target, side.prepared, "*")


def _broken(as_is: Side, fixed: Side, test: str) -> Broken | None:
    came = _run(fixed, test, 1)
    if all(outcome in _FINE for outcome, _ in came):
        return None
    before, again = _run(as_is, test, _AGAIN), _run(fixed, test, _AGAIN)
    passed = bool(before) and all(outcome in _FINE for outcome, _ in before)
    if not passed or any(outcome in _FINE for outcome, _ in again):
        return None
    outcome, message = (again or came)[-1]
    return Broken(test=test, outcome=outcome, message=ui.one_line(message))


def _run(side: Side, test: str, times: int) -> list[tuple[Outcome, str]]:
    """Outcomes and messages of a few seeds of another test."""
    target = replace(side.target, subject=replace(side.target.subject, test=test))
    order = Order(seeds=range(times), gpu=side.gpu, keep_inputs=0, aside="beside", once=True)
    ran = side.runner.run(target, side.prepared, order)
    ends = [
        event
        for folder in ran.folders
        for event in read_sound_events(folder / "records.jsonl", asked=order.asked)
        if event["event"] in (Event.END, Event.MISSING)
    ]
    return [(Outcome(event["outcome"]), str(event.get("message") or "")) for event in ends]
