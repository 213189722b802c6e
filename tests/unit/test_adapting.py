"""Asking an adapter: what goes into the request, what comes back, and what is amiss with an adapter."""

import json

import pytest
from fake_engine import LOST, FakeEngine, bench

from repro.adapting import adapter_of, observe
from repro.bisect.kept import Inputs
from repro.config import load
from repro.errors import NotReadyError, UsageError
from repro.store import Ledger

JUMP = {
    **{"event": "jump", "comparison": 2, "leaf": 0, "element": [0, 3], "argument": "points"},
    **{"coordinate": 3.0000002, "jump": 3, "unit": "pixel", "distance": 2e-7, "distance_ulp": 1.0},
    **{"left": -1.5, "right": "nan", "axis": "x", "level": 1},
}
MATRIX = """\
subject: {path: kernels, test_file: test_op.py, test: test_it, adapter: kernels/adapter.py}
profiles:
  cpu: {python: "3.11", torch: "2.13.0", cuda: cpu}
"""


class Answering(FakeEngine):
    """An engine whose processes write what an adapter said."""

    def start(self, prepared, job):
        running = super().start(prepared, job)
        seed = job.request["seeds"][0]
        lines = [json.dumps({"seed": seed, **each}) for each in self.answers]
        (job.records / "adapter.jsonl").write_text("\n".join(lines))
        return running


@pytest.fixture
def ask(tmp_path):
    (tmp_path / "adapter.py").write_text("FUNCTION = 'op'\n")

    def go(wanted, answers=(), **engine):
        answering = Answering(**engine)
        answering.answers = answers
        with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
            kit = bench(tmp_path, ledger, answering)
            target = kit.target()
            prepared = kit.runner.prepare(target)
            found = observe(kit.runner, target, prepared, wanted, tmp_path / "adapter.py")
            assert not list(ledger.trials())
        return found, answering

    return go


def test_seeds(ask):
    found, engine = ask([4], [JUMP, {"event": "predicted", "rate": 0.08}])
    (request,) = engine.requests
    assert request["adapter"] == {"name": "adapter.py", "source": "FUNCTION = 'op'\n", "elements": 20}
    assert (request["seeds"], request["mode"], request["keep_inputs"]) == ([4], "seeds", 0)
    (jump,) = found.jumps
    assert (jump.seed, jump.comparison, jump.element, jump.argument) == (4, 2, (0, 3), "points")
    assert (jump.place, jump.unit, jump.distance_ulp, jump.left) == (3.0, "pixel", 1.0, -1.5)
    assert jump.right != jump.right
    assert jump.more == {"axis": "x", "level": 1}
    assert found.predicted_rate == 0.08
    assert found.troubles == ()


def test_kept_inputs_are_told_by_the_seed_that_they_came_from(ask, tmp_path):
    inputs = Inputs(seed=4, identity=123456789, file=tmp_path / "inputs" / "a.pt")
    found, engine = ask([inputs], [JUMP])
    assert (engine.requests[0]["seeds"], engine.requests[0]["mode"]) == ([123456789], "replay")
    assert [jump.seed for jump in found.jumps] == [4]
    assert found.predicted_rate is None


def test_what_cannot_be_used_is_said(ask):
    half = {name: value for name, value in JUMP.items() if name != "unit"}
    found, _ = ask([4], [half, {"event": "trouble", "message": "no such function"}])
    assert found.jumps == ()
    assert found.troubles == (
        "the adapter's answer cannot be used: KeyError: 'unit'",
        "no such function",
    )


def test_nothing_said_is_a_trouble(ask):
    assert ask([4])[0].troubles == ("no comparison of these trials was of a gradient by a coordinate",)


def test_an_engine_that_goes_away(ask):
    with pytest.raises(NotReadyError, match="the adapter could not be asked in torch"):
        ask([4], trial=lambda cell, seed: LOST)


def test_matrix_yaml_names_it(tmp_path):
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    spec = load(tmp_path / "matrix.yaml").subject
    with pytest.raises(UsageError) as refused:
        adapter_of(spec)
    assert refused.value.what == "there is no adapter `kernels/adapter.py`"
    assert refused.value.why == "its path starts from the folder that holds matrix.yaml"
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "adapter.py").write_text("")
    assert adapter_of(spec) == tmp_path / "kernels" / "adapter.py"


def test_it_may_be_left_out(tmp_path):
    (tmp_path / "matrix.yaml").write_text(MATRIX.replace(", adapter: kernels/adapter.py", ""))
    assert adapter_of(load(tmp_path / "matrix.yaml").subject) is None
