"""The command line: help, exit codes, what is printed where, and what is left alone."""

import csv
import json
import re
import shlex
import tempfile
from pathlib import Path

import click
import pytest
from fake_engine import DIED, HANG, FakeEngine, cell, press_ctrl_c

from repro import cli
from repro.bisect.journal import Journal, known_commits
from repro.bisect.lines import Candidate
from repro.cli import plan, workspace
from repro.cli.workspace import only_run
from repro.errors import BuildError, ExitCode, NotReadyError
from repro.store import Ledger

MATRIX = """\
subject: {path: kernels, test_file: test_op.py, test: test_it}
trials: {count: 20, block: 10}
profiles:
  cpu:
    python: "3.11"
    torch: "2.13.0"
    triton: ["3.6.0", "3.7.1"]
    cuda: cpu
    exclude:
      - {triton: "3.6.0", reason: not today}
    include:
      - {triton: "3.8.0", reason: the next one}
"""
OLD, OWN, NEXT = (f"torch2.13.0-triton{triton}-cpu-py311" for triton in ("3.6.0", "3.7.1", "3.8.0"))


@pytest.fixture
def engine(monkeypatch):
    fake = FakeEngine()
    monkeypatch.setattr(workspace, "create", lambda name, **_: fake)
    monkeypatch.setattr(plan, "glance", lambda name, **_: ("fake", lambda *asked: fake.present(*asked)))
    return fake


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a matrix and a subject in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(workspace, "has_gpu", lambda: False)
    monkeypatch.setattr(workspace.os, "cpu_count", lambda: 2)
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "test_op.py").write_text("def test_it():\n    pass\n")
    return tmp_path


@pytest.fixture
def repro(capsys, here, engine):
    """Run a command line: its status, what it printed, and what it said."""

    def run(*arguments):
        status = cli._guarded(arguments)
        out, err = capsys.readouterr()
        return status, out, err

    return run


# Help ------------------------------------------------------------------------------------------------------


def test_help_lists_every_command(repro):
    status, out, _ = repro("--help")
    assert status == 0
    for name, text in cli.COMMANDS.items():
        assert f"  {name} " in out
        assert text.partition(" ")[0] in out


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_and_each_of_its_options_is_explained(name):
    command = cli.cli.get_command(click.Context(cli.cli), name)
    assert command.name == name
    assert command.help
    for parameter in command.params:
        assert parameter.help, parameter.name


def test_every_module_of_a_command_is_listed():
    modules = {path.stem for path in Path(cli.__file__).parent.glob("*.py")}
    commands = {name.replace("-", "_") for name in cli.COMMANDS}
    assert modules - {"__init__", "options", "steps", "workspace"} == commands


# Exit codes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["plan", "build", "matrix"])
def test_a_bad_matrix_ends_with_2_and_nothing_touched(repro, here, engine, command):
    (here / "matrix.yaml").write_text(MATRIX.replace('"3.11"', "3.11").replace("cuda", "cudda"))
    before = sorted(here.rglob("*"))
    status, out, err = repro(command)
    assert (status, out) == (ExitCode.USAGE, "")
    assert "matrix.yaml:5: " in err
    assert "matrix.yaml:8: " in err
    assert sorted(here.rglob("*")) == before
    assert (engine.builds, engine.requests) == ([], [])


@pytest.mark.parametrize("command", ["plan", "build", "matrix"])
def test_a_glob_that_matches_nothing(repro, here, command):
    status, out, err = repro(command, "--only", "torch2.14*")
    assert (status, out) == (ExitCode.USAGE, "")
    assert err == (
        "error: no cell matches `torch2.14*`\n"
        f"  why:  a glob has to match a cell's whole id; the nearest are `{OWN}`, `{NEXT}`\n"
        "  next: `repro plan --only '*'` lists every cell; put a `*` at the end to match a prefix\n"
    )
    assert not (here / ".repro").exists()


def test_a_test_that_is_not_there(repro, engine):
    status, out, err = repro("matrix", "--test", "test_at")
    assert (status, out) == (ExitCode.USAGE, "")
    assert err == (
        "error: there is no test `test_at` in test_op.py\n"
        "  why:  the nearest are `test_it`\n"
        "  next: correct subject.test in matrix.yaml, or --test\n"
    )
    assert engine.builds == []


@pytest.mark.parametrize(
    "arguments",
    [["matrix", "--trials", "0"], ["matrix", "--mode", "often"], ["marix"], ["plan", "--engine", "podman"]],
)
def test_a_wrong_word_ends_with_2(repro, here, arguments):
    status, out, err = repro(*arguments)
    assert (status, out) == (ExitCode.USAGE, "")
    assert "Error: " in err
    assert not (here / ".repro").exists()


def test_a_machine_that_is_not_ready_ends_with_3(repro, engine):
    def build(cell):
        raise NotReadyError("no engine answers", why="none was started", next_step="start one")

    engine.build = build
    status, out, err = repro("matrix")
    assert (status, out) == (ExitCode.NOT_READY, "")
    assert err.endswith("error: no engine answers\n  why:  none was started\n  next: start one\n")


def test_two_runs_in_one_folder(repro, here):
    with only_run(here / ".repro"):
        status, _, err = repro("matrix")
    holder = (here / ".repro" / "lock").read_text()
    assert status == ExitCode.NOT_READY
    assert err == (
        f"error: another run works in .repro (process {holder})\n"
        "  why:  two runs would try the same seeds twice\n"
        "  next: wait for it (`repro status` shows how far it is), or take another: --state DIR\n"
    )
    assert repro("matrix")[0] == ExitCode.DONE


@pytest.mark.parametrize("command", ["build", "matrix"])
def test_builds_that_all_fail_end_with_4(repro, engine, command):
    def build(cell):
        raise BuildError("no such wheel")

    engine.build = build
    status, out, _ = repro(command)
    assert status == ExitCode.BUILD_FAILED
    assert out.count("no such wheel") >= 2


def test_one_build_that_fails_is_a_result_of_a_matrix(repro, engine):
    def build(cell):
        if cell.id == OWN:
            raise BuildError("no such wheel")

    engine.build = build
    assert repro("build")[0] == ExitCode.BUILD_FAILED
    status, out, _ = repro("matrix")
    assert status == ExitCode.DONE
    assert f"{OWN}: build failed: no such wheel" in out


def test_a_fault_of_the_kit_ends_with_70_and_a_file(repro, here, monkeypatch):
    def fault(*_):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(workspace, "load", fault)
    status, out, err = repro("plan", "--only", "torch*")
    (report,) = here.glob("repro-bug-*.txt")
    assert (status, out) == (ExitCode.BUG, "")
    assert err == (
        "error: a fault in the kit itself: ZeroDivisionError: a fault\n"
        "  why:  this should not happen, whatever the input\n"
        f"  next: please report it with {report}; nothing that was recorded is lost\n"
    )
    assert report.read_text().startswith("repro plan --only torch*\n")
    assert 'raise ZeroDivisionError("a fault")' in report.read_text()


def test_ctrl_c_ends_with_130_and_the_next_run_goes_on(repro, engine):
    def trial(cell, seed):
        if seed < 5:
            return "PASSED"
        press_ctrl_c()
        return HANG

    engine.trial = trial
    status, out, err = repro("matrix", "--only", OWN)
    assert (status, out) == (ExitCode.INTERRUPTED, "")
    assert err.endswith(
        "interrupted; everything that had finished is kept, and the same command goes on from there\n"
    )
    engine.trial = lambda cell, seed: "PASSED"
    engine.requests.clear()
    assert repro("matrix", "--only", OWN)[0] == ExitCode.DONE
    assert engine.seeds[0] == list(range(5, 15))


# Results ---------------------------------------------------------------------------------------------------


def test_plan(repro):
    status, out, err = repro("plan")
    assert (status, err) == (0, "")
    assert out == PLAN


PLAN = """\
profile cpu, 2 cells

 cell                                  image     trials   minutes   why
 ───────────────────────────────────────────────────────────────────────────────
 torch2.13.0-triton3.7.1-cpu-py311     present       20      ~0.3
 torch2.13.0-triton3.8.0-cpu-py311 ×   present       20      ~0.3   the next one


 left out                            why
 ─────────────────────────────────────────────
 torch2.13.0-triton3.6.0-cpu-py311   not today

0 to build, 40 trials, about 20 s with 2 cells at a time; next: repro matrix
"""


@pytest.mark.parametrize("command", ["plan", "doctor"])
def test_the_next_step_keeps_what_was_given(repro, here, monkeypatch, command):
    monkeypatch.setattr("repro.cli.doctor.checks", lambda **_: [])
    (here / "matrix.yaml").rename(here / "my matrix.yaml")
    given = "--matrix 'my matrix.yaml' --only 'torch*' --only '*cpu*' --state state --engine venv"
    status, out, err = repro(command, *shlex.split(given))
    assert (status, err) == (0, "")
    assert out.endswith(f"; next: repro matrix {given}\n")


def test_the_next_step_of_a_plan_keeps_the_test_and_its_trials(repro):
    given = "--test test_it --trials 30 --fresh"
    _, out, _ = repro("plan", *shlex.split(given))
    assert out.endswith(f"; next: repro matrix {given}\n")


def test_the_steps_after_a_run_run_as_they_stand(repro, engine, here):
    (here / "matrix.yaml").rename(here / "my matrix.yaml")
    engine.trial = lambda cell, seed: "FAILED" if seed < 5 else "PASSED"
    given = f"--matrix 'my matrix.yaml' --only {OWN} --state state"
    _, out, _ = repro("matrix", *shlex.split(given), "--trials", "30")
    steps = re.findall("`(repro [^`]*)`", out.splitlines()[-1])
    assert steps == ["repro status --state state", f"repro matrix --mode fresh {given} --trials 30"]
    assert [repro(*shlex.split(step)[1:])[0] for step in steps] == [0, 0]
    assert not (here / ".repro").exists()


def test_the_jobs_of_a_workflow_run_as_they_stand(repro, here):
    (here / "matrix.yaml").rename(here / "my matrix.yaml")
    given = "--matrix 'my matrix.yaml' --state state --engine venv"
    _, out, _ = repro("export", "--github-matrix", *shlex.split(given), "--only", "torch*")
    job = json.loads(out)["include"][0]
    assert job["command"] == f"repro matrix --profile cpu --only '{job['cell']}' {given}"
    assert repro(*shlex.split(job["command"])[1:])[0] == 0
    assert not (here / ".repro").exists()


def test_ledgers_that_were_merged_are_reported_together(repro, here):
    Ledger.open(here / "theirs" / "ledger.sqlite").close()
    _, out, _ = repro("merge", "theirs", "--state", "of both")
    assert out.endswith("; next: repro report --state 'of both'\n")


def test_plan_as_json(repro, engine):
    engine.present = lambda cell, requirements: cell.id == OWN
    status, out, _ = repro("plan", "--json", "--trials", "30")
    told = json.loads(out)
    assert (status, list(told)) == (0, ["profile", "cells", "excluded", "total"])
    assert {cell["id"]: (cell["present"], cell["trials"]["wanted"]) for cell in told["cells"]} == {
        OWN: (True, 30),
        NEXT: (False, 30),
    }
    assert told["excluded"] == [{"id": OLD, "reason": "not today"}]


def test_matrix_as_json(repro, engine):
    engine.trial = lambda cell, seed: DIED if seed == 3 else "FAILED" if seed < 5 else "PASSED"
    status, out, err = repro("matrix", "--json", "--half-width", "0")
    told = json.loads(out)
    assert status == 0
    assert f"{OWN}: done" in err
    assert list(told) == ["profile", "subject", "mode", "cells", "excluded", "notes", "next"]
    assert list(told["subject"]) == ["origin", "revision", "test"]
    assert told["excluded"] == [{"id": OLD, "reason": "not today"}]
    assert [cell["id"] for cell in told["cells"]] == [OWN, NEXT]
    cell = told["cells"][1]
    assert cell.pop("seconds") >= 0
    assert cell == {
        "id": NEXT,
        "crossed": True,
        "gpu": None,
        "state": "done",
        "rate": {
            "failed": 4,
            "trials": 19,
            "rate": 4 / 19,
            "low": cell["rate"]["low"],
            "high": cell["rate"]["high"],
        },
        "interval": "wilson",
        "others": {"CRASHED": 1},
        "note": "",
    }
    assert f"{NEXT}: CRASHED, such as seed 3: the process was ended by signal 11: last words" in told["notes"]


def test_matrix_table(repro, engine):
    engine.trial = lambda cell, seed: "FAILED" if seed < 5 else "PASSED"
    status, out, _ = repro("matrix")
    assert status == 0
    assert out == TABLE


TABLE = """\
test_it, mode seeds, at most 20 trials a cell; intervals of 95 %, Wilson's, for a fixed number of trials

 cell                                  state   failed/trials     rate   interval           others
 ────────────────────────────────────────────────────────────────────────────────────────────────
 torch2.13.0-triton3.7.1-cpu-py311     done             5/20   25.0 %   11.2 % to 46.9 %
 torch2.13.0-triton3.8.0-cpu-py311 ×   done             5/20   25.0 %   11.2 % to 46.9 %


 left out                            why
 ─────────────────────────────────────────────
 torch2.13.0-triton3.6.0-cpu-py311   not today

× a crossed cell: its Triton or ptxas is not the one that this torch was released with
cpu cells ran without a GPU, kernels under Triton's interpreter: their rates say nothing about a GPU
next: `repro status` lists the failing seeds; `repro matrix --mode fresh` gives each its own process
"""


def test_what_kept_the_test_from_beginning_is_left_behind_with_fresh(repro, engine):
    lacking = {
        "event": "missing",
        "reason": "collection",
        "outcome": "FAILED_OTHERWISE",
        "message": "no einops",
    }
    engine.begin = lambda cell: lacking
    _, out, _ = repro("matrix", "--only", OWN)
    assert f"{OWN}: FAILED_OTHERWISE, such as seed 0: no einops\n" in out
    engine.begin = lambda cell: None
    engine.trial = lambda cell, seed: "FAILED_OTHERWISE" if seed == 9 else "PASSED"
    _, out, _ = repro("matrix", "--only", OWN)
    assert f"{OWN}: FAILED_OTHERWISE, such as seed 9: " in out
    assert "next: if that other failure is the one you look for" in out
    engine.trial = lambda cell, seed: "PASSED"
    engine.begin = lambda cell: lacking
    repro("matrix", "--only", NEXT)
    engine.begin = lambda cell: None
    _, out, _ = repro("matrix", "--only", NEXT)
    assert f"next: `repro matrix --fresh --only {NEXT}` begins anew" in out


def test_a_test_that_seeds_itself_is_told(repro, engine):
    repro("matrix", "--only", OWN)
    for job in engine.jobs:
        file = job.records / "records.jsonl"
        lines = file.read_text().splitlines()
        second = [place for place, line in enumerate(lines) if json.loads(line)["event"] == "end"][1]
        lines.insert(second + 1, json.dumps({"event": "own_seeds", "libraries": ["torch", "numpy"]}))
        file.write_text("".join(f"{line}\n" for line in lines))
    _, out, _ = repro("matrix", "--only", OWN)
    assert "\nthe test, or a fixture of it, seeds torch and numpy itself: " in out
    _, out, _ = repro("matrix", "--only", OWN, "--mode", "fresh")
    assert "itself" not in out


def test_plain_lines_where_stderr_is_no_terminal(repro):
    _, _, err = repro("matrix", "--only", OWN)
    lines = err.splitlines()
    assert lines[0].startswith("test_it of kernels at content-")
    assert lines[1] == f"{OWN}: building"
    assert lines[-1] == f"{OWN}: done, 0 of 20 failed, 0 % (0 % to 16.1 %)"
    assert "\x1b" not in err


def test_status(repro, engine):
    engine.trial = lambda cell, seed: "FAILED" if seed in (4, 11) else "PASSED"
    repro("matrix", "--only", OWN)
    told = json.loads(repro("status", "--json")[1])
    (series,) = told
    revision = series.pop("revision")
    assert series == {
        "cell": OWN,
        "test": "test_it",
        "mode": "seeds",
        "gpu": None,
        "commit": None,
        "rate": {**series["rate"], "failed": 2, "trials": 20, "rate": 0.1},
        "interval": "anytime",
        "others": {},
        "failing_seeds": [4, 11],
    }
    status, out, _ = repro("status")
    assert status == 0
    assert " ".join(out.splitlines()[3].split()) == (
        f"{OWN} {revision[:20]} test_it seeds - 2/20 0.37 % to 40.9 % 4 11"
    )
    assert out.splitlines()[-1] == "intervals of 95 %, valid whenever trials stopped"


def test_status_and_export_show_the_same_interval_which_is_named(repro, engine):
    engine.trial = lambda cell, seed: "FAILED" if seed in (4, 11) else "PASSED"
    repro("matrix", "--only", OWN)
    (told,) = json.loads(repro("status", "--json")[1])
    (row,) = csv.DictReader(repro("export", "--csv")[1].splitlines())
    assert [float(row[end]) for end in ("low", "high")] == pytest.approx(
        [told["rate"][end] for end in ("low", "high")], rel=1e-5
    )
    assert (row["interval"], told["interval"]) == ("anytime", "anytime")
    junit = repro("export", "--junit")[1]
    assert "(0.37 % to 40.9 %; interval of 95 %, valid whenever trials stopped)" in junit


def test_the_interval_of_a_matrix_is_named_by_what_may_stop_it(repro):
    title = repro("matrix", "--only", OWN, "--half-width", "0.2")[1].splitlines()[0]
    assert title.endswith("fewer once within ±20.0 %; intervals of 95 %, valid whenever trials stopped")
    title = repro("matrix", "--only", OWN, "--half-width", "0")[1].splitlines()[0]
    assert title.endswith("; intervals of 95 %, Wilson's, for a fixed number of trials")


def test_status_names_commits_that_a_search_tried(repro, here):
    repro("matrix", "--only", OWN)
    (series,) = json.loads(repro("status", "--json")[1])
    for name, subject in (("a", "Round twice\x1b[2J"), ("b", "Mend it")):
        candidate = Candidate(name=name * 40, label=f"{name * 10} {subject}", cell=cell())
        Journal.open(here / ".repro", {"test": name}).tried(
            candidate, series["revision"] + name * 5, "test_it"
        )
    version = Candidate(name="3.6.0", label="triton 3.6.0", cell=cell())
    Journal.open(here / ".repro", {"test": "c"}).tried(version, series["revision"], "test_it")
    (here / ".repro" / "searches" / "0.json").write_text('{"series": [1], "labels": {"a": []}}')
    assert known_commits(here / ".repro") == {
        "a" * 40: "aaaaaaaaaa Round twice\x1b[2J",
        "b" * 40: "bbbbbbbbbb Mend it",
        series["revision"] + "a" * 5: "aaaaaaaaaa Round twice\x1b[2J",
        series["revision"] + "b" * 5: "bbbbbbbbbb Mend it",
    }
    assert f" {series['revision'][:20]} " in repro("status")[1]
    candidate = Candidate(name="d" * 40, label="dddddddddd Clamp\x1b[2J it", cell=cell())
    Journal.open(here / ".repro", {"test": "d"}).tried(candidate, series["revision"], "test_it")
    out = repro("status")[1]
    assert f" {OWN}   dddddddddd Clamp [2J it   test_it " in out
    assert series["revision"][:20] not in out


def test_status_of_nothing(repro, here):
    status, out, err = repro("status")
    assert (status, out, err) == (
        ExitCode.USAGE,
        "",
        "error: there is no ledger in .repro\n  next: repro matrix\n",
    )
    assert not (here / ".repro").exists()


# Going on and beginning anew -------------------------------------------------------------------------------


def test_the_same_command_again_runs_nothing(repro, engine):
    first = json.loads(repro("matrix", "--json")[1])
    engine.requests.clear()
    again = json.loads(repro("matrix", "--json")[1])
    assert engine.requests == []
    assert [cell["rate"] for cell in again["cells"]] == [cell["rate"] for cell in first["cells"]]


def test_fresh_sets_earlier_evidence_of_these_cells_aside(repro, engine, here):
    repro("matrix")
    blocks = {path.name for path in (here / ".repro" / "blocks").iterdir()}
    engine.requests.clear()
    engine.trial = lambda cell, seed: "FAILED"
    status, out, err = repro("matrix", "--fresh", "--only", OWN, "--json")
    assert status == 0
    (home,) = (here / ".repro" / "set-aside").iterdir()
    assert f"earlier trials are set aside in {home.relative_to(here)}\n" in err
    moved = {path.name for path in home.iterdir()}
    assert len(moved) == 2
    assert moved < blocks
    assert json.loads(out)["cells"][0]["rate"]["failed"] == 20
    told = {series["cell"]: series["rate"]["failed"] for series in json.loads(repro("status", "--json")[1])}
    assert told == {OWN: 20, NEXT: 0}


def test_another_state_folder(repro, here):
    assert repro("matrix", "--state", "elsewhere")[0] == 0
    assert (here / "elsewhere" / "ledger.sqlite").exists()
    assert not (here / ".repro").exists()
