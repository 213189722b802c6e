"""Which trial is looked into, by what request, and that the ledger knows nothing of it."""

import itertools
import sys
from types import ModuleType

import pytest
from fake_engine import DIED, LOST, FakeEngine, bench, cell
from seen import step, write

from repro.errors import NotReadyError, NotReproducedError
from repro.inspect import Wanted, probe, tensorboard
from repro.inspect.choosing import choose
from repro.inspect.records import Probe
from repro.run import Order
from repro.store import Ledger
from repro.trial.request import ProbeRequest

A, B = cell("3.6.0"), cell("3.7.1")


@pytest.fixture
def kit(tmp_path):
    """A runner over an engine that fails at odd seeds, and writes a probe where it is asked for one."""
    engine = FakeEngine(keeps=True)

    def trial(cell, seed):
        job = engine.jobs[-1]
        if "probe" in job.request:
            end = {"event": "end", "outcome": "FAILED", "steps": 0}
            write(job.records / "probe.jsonl", {"event": "begin", "seed": seed}, end)
        return "FAILED" if seed % 2 and cell == B else "PASSED"

    engine.trial = trial
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        yield bench(tmp_path, ledger, engine)


def look(kit, seed=3, **options):
    target = kit.target(B)
    wanted = Wanted(seed=seed, options=ProbeRequest(**options))
    return probe(kit.runner, target, kit.runner.prepare(target), wanted)


def test_a_probe_leaves_no_trace_in_the_ledger(kit):
    found = look(kit, steps=5)
    assert (found.begin.seed, found.end.outcome) == (3, "FAILED")
    (request,) = kit.engine.requests
    assert (request["seeds"], request["keep_inputs"], request["probe"]["steps"]) == ([3], 0, 5)
    kit.runner.recover()
    assert kit.outcomes == {}
    assert kit.ledger.tallies() == []


def test_a_probe_whose_trial_never_begins(kit):
    kit.engine.begin = lambda cell: DIED
    with pytest.raises(NotReproducedError, match="nothing could be probed") as refused:
        look(kit)
    assert "ended by signal 11" in refused.value.what


def test_a_probe_for_which_the_engine_fails(kit):
    kit.engine.begin = lambda cell: LOST
    with pytest.raises(NotReadyError, match="the engine went away"):
        look(kit)


def test_the_cell_that_fails_most_is_chosen(kit):
    for each in (A, B):
        kit.run(Order(seeds=range(6)), kit.target(each))
    subject = kit.target().subject
    choice = choose(kit.runner, subject, [A, B], None, None)
    assert (choice.cell, choice.seed, choice.inputs.seed) == (B, 1, 1)
    assert choose(kit.runner, subject, [A, B], 5, None).inputs.seed == 5
    assert choose(kit.runner, subject, [A, B], 4, None).inputs is None
    assert choose(kit.runner, subject, [A], 5, None).cell == A


def test_a_failing_seed_does_where_no_inputs_were_kept(kit):
    kit.engine.keeps = False
    kit.run(Order(seeds=range(6)), kit.target(B))
    choice = choose(kit.runner, kit.target().subject, [A, B], None, None)
    assert (choice.cell, choice.seed, choice.inputs) == (B, 1, None)
    assert choose(kit.runner, kit.target().subject, [A, B], 5, None).cell == B


def test_without_a_failure_a_seed_has_to_be_named(kit):
    kit.run(Order(seeds=range(6)), kit.target(A))
    with pytest.raises(NotReproducedError, match="no failure") as refused:
        choose(kit.runner, kit.target().subject, [A], None, None)
    assert "--seed 0" in refused.value.next_step


# Event files -----------------------------------------------------------------------------------------------


class Writer:
    """Stands in for tensorboard's own writer."""

    events = ()

    def __init__(self, folder):
        self.folder, self.closed = folder, False
        Writer.last, Writer.events = self, []

    def add_event(self, event):
        self.events.append(event)

    def close(self):
        self.closed = True


class Message(dict):
    """Stands in for a protocol buffer."""

    def __init__(self, **fields):
        super().__init__(fields)


@pytest.fixture
def installed(monkeypatch):
    summary = type("Summary", (Message,), {"Value": Message})
    names = {
        "tensorboard.summary.writer.event_file_writer": {"EventFileWriter": Writer},
        "tensorboard.compat.proto.event_pb2": {"Event": Message},
        "tensorboard.compat.proto.summary_pb2": {"Summary": summary},
    }
    for name, content in names.items():
        parts = name.split(".")
        for package in itertools.accumulate(parts, lambda a, b: f"{a}.{b}"):
            monkeypatch.setitem(sys.modules, package, ModuleType(package))
        vars(sys.modules[name]).update(content)


def test_event_files(installed, tmp_path):
    steps = [step(0), step(4, nan=2, phase="backward", growth=3.0)]
    home = tensorboard.write(Probe(steps=steps), tmp_path, "cell")
    assert home == tmp_path / "cell"
    assert Writer.last.closed
    first, second = Writer.events
    assert (first["step"], second["step"]) == (0, 4)
    values = {one["tag"]: one["simple_value"] for one in second["summary"]["value"]}
    assert values["backward/nan"] == 2.0
    assert values["backward/growth"] == 3.0
    assert values["backward/quantile 99 %"] == 2.0
    assert "backward/max_ulp" not in values


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(NotReadyError, match="need the package tensorboard") as refused:
        tensorboard.check()
    assert f"{sys.executable} -m pip install 'tensorboard>=" in refused.value.next_step
