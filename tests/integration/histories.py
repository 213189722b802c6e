"""Generated histories with a known culprit, for tests of the search for a commit.

Each function writes a git repository of some 60 commits within a fraction of a second. Unless told otherwise
the subject is the package of `rows`, and every change but the culprit has no effect on the failure rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

from fast_import import Repository
from rows import TEST_FILE, State, files_of, innocent, test_name

LENGTH = 64
CULPRIT = 41
_EDGE = 0.9
"""`snap` where the test's inputs decide: with it, `reach` can make any rate."""

Noise = Literal["inputs", "run"]
"""Whether a failure follows from the trial's seed, or differs from run to run."""
Events = Mapping[int, tuple[str, dict[str, object]]]
"""By index of a commit on the main line: its message, and the fields of the state that it changes."""


@dataclass(frozen=True, kw_only=True)
class History:
    """A repository, and the truth about it.

    Args:
        path: the repository, with its last commit checked out.
        commits: ids of its first parents, oldest first.
        culprit: id of the commit since which the test fails more often, or None; inside a merge it is not
            among `commits`.
        test: pytest's name of the target test at the last commit.
        test_file: that holds it.
        merge: id of the merge that brought the culprit in, or None.
        fix: id of the commit since which the test fails no more, or None.
        broken: ids of commits that cannot be imported.
        names: by index of the first commit that has it, each name that the test went by.
    """

    path: Path
    commits: list[str]
    culprit: str | None
    test: str = "test_backward"
    test_file: str = TEST_FILE
    merge: str | None = None
    fix: str | None = None
    broken: tuple[str, ...] = ()
    names: tuple[tuple[int, str], ...] = ()


def kernel_change(
    path: Path,
    *,
    old: float,
    new: float,
    noise: Noise = "inputs",
    culprit: int = CULPRIT,
    length: int = LENGTH,
) -> History:
    """An edit of the kernel raises the failure rate from `old` to `new`."""
    events = {culprit: ("Round places up to the next pixel", {"snap": new})}
    commits = _line(path, State(snap=old, replays=noise == "inputs"), events, length)
    return History(path=path, commits=commits, culprit=commits[culprit])


def input_change(
    path: Path,
    *,
    old: float,
    new: float,
    noise: Noise = "inputs",
    culprit: int = CULPRIT,
    length: int = LENGTH,
) -> History:
    """The code stays as it is; the test draws other inputs from the culprit on."""
    events = {culprit: ("Draw places further from the pixels", {"reach": _reach(new)})}
    start = State(snap=_EDGE, reach=_reach(old), replays=noise == "inputs")
    commits = _line(path, start, events, length)
    return History(path=path, commits=commits, culprit=commits[culprit])


def _reach(rate: float) -> float:
    return (1 - _EDGE) / (1 - rate)


def born(
    path: Path, *, rate: float, renamed: bool = False, with_file: bool = False, length: int = LENGTH
) -> History:
    """The test is born half-way and fails at `rate` from its birth; the code was always like that.

    Args:
        renamed: it is born with one parameter, and gets a second and a third one.
        with_file: its file is born with it.
    """
    birth = length // 2
    steps = [(birth, 1), (birth + 8, 2), (birth + 16, 3)] if renamed else [(birth, 0)]
    events: dict[int, tuple[str, dict[str, object]]] = {
        index: ("Test one more parameter", {"parameters": count}) for index, count in steps
    }
    events[birth] = ("Test the slope", {"parameters": steps[0][1], "file": True})
    commits = _line(path, State(snap=rate, parameters=None, file=not with_file), events, length)
    names = tuple((index, test_name(count)) for index, count in steps)
    return History(path=path, commits=commits, culprit=commits[birth], test=names[-1][1], names=names)


def broken_commits(
    path: Path, *, old: float, new: float, hiding: bool, noise: Noise = "inputs", length: int = LENGTH
) -> History:
    """Six commits cannot be imported; with `hiding` the culprit is among them, else shortly after."""
    culprit = CULPRIT
    begin = culprit - 3 if hiding else culprit - 9
    events: dict[int, tuple[str, dict[str, object]]] = {
        begin: ("Split the kernel", {"imports": False}),
        begin + 6: ("Mend the import", {"imports": True}),
        culprit: ("Round places up to the next pixel", {"snap": new}),
    }
    commits = _line(path, State(snap=old, replays=noise == "inputs"), events, length)
    broken = tuple(commits[begin : begin + 6])
    return History(path=path, commits=commits, culprit=commits[culprit], broken=broken)


def reverted(path: Path, *, rate: float, noise: Noise = "inputs", length: int = LENGTH) -> History:
    """The test never fails, begins to fail, and the culprit is reverted."""
    events: dict[int, tuple[str, dict[str, object]]] = {
        20: ("Round places up to the next pixel", {"snap": rate}),
        CULPRIT: ('Revert "Round places up to the next pixel"', {"snap": 0.0}),
    }
    commits = _line(path, State(replays=noise == "inputs"), events, length)
    return History(path=path, commits=commits, culprit=commits[20], fix=commits[CULPRIT])


def fixed(path: Path, *, rate: float, noise: Noise = "inputs", length: int = LENGTH) -> History:
    """The test fails from the first commit on, until it is fixed."""
    events = {CULPRIT: ("Round no place up", {"snap": 0.0})}
    commits = _line(path, State(snap=rate, replays=noise == "inputs"), events, length)
    return History(path=path, commits=commits, culprit=None, fix=commits[CULPRIT])


def unchanged(path: Path, *, rate: float, noise: Noise = "inputs", length: int = LENGTH) -> History:
    """The same rate from the first commit to the last."""
    commits = _line(path, State(snap=rate, replays=noise == "inputs"), {}, length)
    return History(path=path, commits=commits, culprit=None)


def never_fails(path: Path, *, length: int = LENGTH) -> History:
    """The test passes always and everywhere."""
    return unchanged(path, rate=0.0, length=length)


def layout(path: Path, *, old: float, new: float, length: int = LENGTH) -> History:
    """The package asks for its own version at import, moves to `src/`, and only then begins to fail."""
    events: dict[int, tuple[str, dict[str, object]]] = {
        length // 2: ("Move the package to src", {"source": "src/"}),
        CULPRIT: ("Round places up to the next pixel", {"snap": new}),
    }
    commits = _line(path, State(snap=old, asks_version=True), events, length)
    return History(path=path, commits=commits, culprit=commits[CULPRIT])


def merges(
    path: Path, *, old: float, new: float, noise: Noise = "inputs", at_merge: bool = False, length: int = 40
) -> History:
    """Every third commit of the main line merges a branch of four.

    The culprit is the third commit of a branch. With `at_merge` it is the merge itself: the branch widens
    what is rounded, the main line begins to round, and neither fails alone (`old` must be 0 then).
    """
    culprit = length * 2 // 3 // 3 * 3 + 2  # the index of a merge
    states = [State(snap=old, rounds_up=not at_merge, replays=noise == "inputs")]
    repository = Repository(path)
    main, hidden = [repository.commit("Begin", files_of(states[0]))], 0
    for index in range(1, length):
        if index % 3 == 2:
            fork = max(0, index - 3)
            change = {"snap": new} if index == culprit else {}
            branch, theirs = _branch(repository, main[fork], states[fork], f"part_{index}", change)
            hidden = branch[2] if index == culprit else hidden
            states.append(_merged(states[fork], states[-1], theirs))
            main.append(
                repository.commit(f"Merge part_{index}", files_of(states[-1]), [main[-1], branch[-1]])
            )
        else:
            message, state = innocent(states[-1], index)
            if at_merge and index == culprit - 1:
                message, state = "Round places up", replace(states[-1], rounds_up=True)
            states.append(state)
            main.append(repository.commit(message, files_of(state), [main[-1]]))
    ids = repository.finish()
    merge = ids[main[culprit]]
    commits = [ids[number] for number in main]
    return History(
        path=path,
        commits=commits,
        culprit=merge if at_merge else ids[hidden],
        merge=None if at_merge else merge,
    )


def _branch(
    repository: Repository, fork: int, state: State, name: str, change: Mapping[str, object]
) -> tuple[list[int], State]:
    """Four commits on a branch, the third with the given change; their numbers, and the last one's state."""
    numbers = [fork]
    for step in range(4):
        state = replace(state, features=(*state.features, f"{name}_{step}"), **(change if step == 2 else {}))
        numbers.append(repository.commit(f"Add {name}, step {step}", files_of(state), [numbers[-1]]))
    return numbers[1:], state


def _merged(base: State, ours: State, theirs: State) -> State:
    """Every field from the side that changed it; features from both."""
    changed = {
        one.name: getattr(theirs, one.name)
        for one in fields(State)
        if getattr(theirs, one.name) != getattr(base, one.name)
    }
    new = tuple(name for name in theirs.features if name not in ours.features)
    return replace(ours, **{**changed, "features": (*ours.features, *new)})


def _line(path: Path, state: State, events: Events, length: int) -> list[str]:
    """Write a history without merges; the ids of its commits."""
    repository = Repository(path)
    numbers = [repository.commit("Begin", files_of(state))]
    for index in range(1, length):
        if index in events:
            message, change = events[index]
            state = replace(state, **change)
        else:
            message, state = innocent(state, index)
        numbers.append(repository.commit(message, files_of(state), numbers[-1:]))
    ids = repository.finish()
    return [ids[number] for number in numbers]
