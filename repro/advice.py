"""The command that helps most after a matrix run."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from repro import ui
from repro.matrix import CellResult, Phase
from repro.trial.records import Outcome

Told = Mapping[str, str]
"""By cell id, all that its other outcomes said."""

_NO_MODULE = re.compile(r"No module named ['\"]?([A-Za-z0-9_.]+)")


def gist(message: str) -> str:
    """A failure's message on one line: of a traceback, what was raised in the end."""
    raised = [line[1:] for line in message.splitlines() if line.startswith("E  ")]
    return ui.one_line(" ".join(raised) or message)


def next_step(
    results: Sequence[CellResult], told: Told, *, engine: str, logs: str, unbegun: Collection[str] = ()
) -> str:
    """What to do next.

    Args:
        results: what is known of each cell.
        told: by cell id, what trials with other outcomes said.
        engine: the engine as asked for.
        logs: folder of the builds' logs, as it is shown.
        unbegun: ids of cells whose other failures are of tests that could not be collected.
    """
    broken = [result for result in results if result.phase is Phase.BROKEN]
    return (
        _mend(broken, told, engine)
        or _begin_anew(results, unbegun)
        or _other_failure(results)
        or _look_again(broken, logs)
        or _go_on(results)
    )


def _mend(broken: Sequence[CellResult], told: Told, engine: str) -> str:
    """What a cell lacks, or what the test's name lacks: both stop every trial."""
    for result in broken:
        note = result.note
        if "has several parametrizations" in note:
            return "name one of these cases under subject.test in matrix.yaml, or with --test 'NAME[CASE]'"
        if module := _missing_module(note) or _missing_module(told.get(result.cell.id, "")):
            return _provide(module, engine)
        if set(result.others) == {Outcome.COMPILE_ERROR} and not result.cell.on_gpu:
            return (
                "Triton's interpreter cannot run every kernel: try a machine with a GPU, another triton"
                " in matrix.yaml, or another test or case with --test"
            )
        if set(result.others) == {Outcome.SKIPPED}:
            return (
                "the test skips itself: give it what it asks for under subject.requirements,"
                " or name another test or case with --test"
            )
    return ""


def _provide(module: str, engine: str) -> str:
    if engine == "host":
        return f"install the package that holds `{module}` into this interpreter, or take --engine venv"
    return (
        f"name the package that holds `{module}` under subject.requirements in matrix.yaml;"
        " if it is the repository's own, its folder under subject.python_path"
    )


def _begin_anew(results: Sequence[CellResult], unbegun: Collection[str]) -> str:
    """Trials that could not begin say nothing any more, once others could."""
    if any(result.rate.trials and result.cell.id in unbegun for result in results):
        return "`repro matrix --fresh` begins anew, without the trials that could not begin at first"
    return ""


def _other_failure(results: Sequence[CellResult]) -> str:
    if any(Outcome.FAILED_OTHERWISE in result.others for result in results):
        return "if that other failure is the one you look for, name it under subject.signature in matrix.yaml"
    return ""


def _look_again(broken: Sequence[CellResult], logs: str) -> str:
    if broken:
        return f"`repro doctor`, and {logs} for {broken[0].cell.id}; the same command tries it again"
    return ""


def _go_on(results: Sequence[CellResult]) -> str:
    if any(result.rate.failed for result in results):
        return (
            "`repro status` lists the failing seeds; `repro matrix --mode fresh` gives each its own process"
        )
    if all(not result.cell.on_gpu for result in results):
        return "run it on a machine with a GPU; `repro doctor` says what this one lacks"
    return "more trials: `repro matrix --trials 1000 --half-width 0.01`"


def _missing_module(text: str) -> str:
    """The top-level module that an import did not find, or ""."""
    found = _NO_MODULE.search(text)
    return found[1].partition(".")[0] if found else ""
