"""Looking inside a failing trial in a container: a debugger, the smallest case, the report's script."""

from __future__ import annotations

import json

import pytest
from terminal import WRONG, Roomy, piped, typed

from repro.engines.client import connect
from repro.engines.tags import LABEL

pytestmark = [pytest.mark.slow, pytest.mark.docker]
DOCKER = ("--engine", "docker")


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """A kit whose ledger has a failure in a container, and its seed."""
    home = tmp_path_factory.mktemp("inside")
    kit = Roomy(home, home / "state")
    kit.plant(WRONG)
    told = kit.matrix(*DOCKER, "--trials", 8)
    (outcomes,) = kit.outcomes(told).values()
    return kit, next(seed for seed, outcome in outcomes.items() if outcome == "FAILED")


def containers_of(kit):
    """Containers that were started for this state folder and are still there."""
    mounted = str(kit.state)
    return [
        each.name
        for each in connect().containers.list(all=True, filters={"label": f"{LABEL}.state"})
        if any(mount.get("Source", "").startswith(mounted) for mount in each.attrs["Mounts"])
    ]


def test_pdb_on_a_terminal_in_a_container(failed):
    kit, seed = failed
    inside = "open('/proc/self/cgroup').read() and __import__('os').path.exists('/.dockerenv')"
    status, shown = typed(
        kit.command("debug", *DOCKER, "--seed", seed), kit.home, "p a.grad.shape", f"p {inside}", "c"
    )
    assert status == 0, shown
    assert "-> torch.testing.assert_close(a.grad, b.grad)" in shown
    assert "torch.Size([6])" in shown
    assert "True" in shown.partition("dockerenv")[2]
    assert containers_of(kit) == []


def test_pdb_through_a_pipe_in_a_container(failed):
    kit, seed = failed
    status, shown = piped(
        kit.command("debug", *DOCKER, "--seed", seed), kit.home, "p a.grad.shape", "p seed()", "c"
    )
    assert status == 0
    assert "(Pdb) p a.grad.shape\ntorch.Size([6])\n" in shown
    assert containers_of(kit) == []


def test_the_smallest_case_in_a_container(failed):
    kit, seed = failed
    told = json.loads(kit.run("minimize", *DOCKER, "--seed", seed, "--seeds", 2, "--json"))
    assert told["seed"] == seed
    assert {one["name"]: one["to"] for one in told["changes"]} == {"SIZE": "1"}
    assert (told["by"], told["complete"]) == ("inputs", True)
    assert (told["again"]["failed"], told["again"]["trials"]) == (5, 5)
    assert containers_of(kit) == []


def test_the_script_ran_in_a_container_before_it_was_printed(failed):
    kit, seed = failed
    told = json.loads(kit.run("report", *DOCKER, "--json"))
    assert told["script"]["shown"]
    script = (kit.state / "report" / "script.py").read_text()
    assert f"```python\n{script.rstrip()}\n```" in (kit.state / "report" / "report.md").read_text()
    (ran,) = [path for path in kit.state.glob("scripts/*/script.py") if path.read_text() == script]
    printed = (ran.parent / "output.log").read_text()
    assert printed.startswith(f"seed {seed}: AssertionError at torch.testing.assert_close")
    assert containers_of(kit) == []
