"""`repro minimize` over real processes: a planted case becomes as small as it can be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest
from command_line import Kit

pytestmark = pytest.mark.slow


class Patient(Kit):
    """A kit whose trials may take a while: the first one imports what recording draws needs."""

    def plant(self, code, **options):
        super().plant(code, **options)
        matrix = self.home / "matrix.yaml"
        matrix.write_text(matrix.read_text().replace("trial_timeout: 3s", "trial_timeout: 90s"))


@pytest.fixture
def kit(tmp_path):
    return Patient(tmp_path, tmp_path / "state")


def minimize(kit, *arguments, status=0):
    told = json.loads(kit.run("minimize", "--engine", "host", "--json", *arguments, status=status))
    assert told == json.loads((kit.state / "minimized.json").read_text())
    return told


def test_one_element_of_one_query(kit):
    """One element decides: sizes go to 1 with it in them, though hardly a seed draws such a one."""
    kit.plant(
        """
        import torch
        QUERIES, POINTS = 60, 4

        def test_it(aligned=True):
            points = torch.rand(QUERIES, POINTS)
            weights = torch.randn(QUERIES, POINTS)
            wrong = torch.where(points > 0.98, 0.5, 0.0)
            torch.testing.assert_close(points * weights + wrong, points * weights)
        """
    )
    told = minimize(kit, "--seed", 1, "--seeds", 2)
    sizes = {one["name"]: one["to"] for one in told["changes"]}
    assert sizes == {"QUERIES": "1", "POINTS": "1"}
    assert told["without_effect"] == ["aligned"]
    assert (told["left"], told["drawn"]) == (1, 2)
    assert told["elements"] == [{"draw": 0, "op": "rand", "index": [0, 0], "value": 1.0}]
    assert (told["by"], told["complete"]) == ("inputs", True)
    assert (told["again"]["failed"], told["again"]["trials"]) == (5, 5)
    assert not (kit.home / "subject" / "test_planted.py").read_text().count("= 1, 1")
    with pytest.raises(AssertionError):
        kit.run("replay", "--engine", "host")  # no altered trial is in the ledger


def test_without_tensors_seeds_stand_for_the_failure(kit):
    kit.plant(
        """
        import random
        import pytest
        FACES = 12

        @pytest.mark.parametrize("strict", [False, True])
        @pytest.mark.parametrize("rolls", [40])
        def test_it(rolls, strict):
            thrown = [random.randrange(FACES) for _ in range(rolls)]
            assert 5 not in thrown or not strict
        """,
        test='"test_it[40-True]"',
    )
    kit.run("matrix", "--engine", "host", "--half-width", 0)
    text = kit.run("minimize", "--engine", "host", "--seeds", 20)
    assert "the smallest case, run again: 5 of 5 failed" in text
    told = json.loads((kit.state / "minimized.json").read_text())
    assert {one["name"]: one["to"] for one in told["changes"]} == {"rolls": "1", "FACES": "6"}
    assert (told["by"], told["inputs"]) == ("seeds", None)
    assert [one["name"] for one in told["unchanged"]] == ["strict"]


DICE = """
    import random
    ROLLS = 12

    def test_it():
        thrown = [random.random() for _ in range(ROLLS)]
        assert len(thrown) < 3
"""
"""Without tensors, and seeds alone decide: the same search takes the same steps."""


def killed(kit, number, *arguments):
    """Begin a search and kill it once it has run so many processes."""
    process = subprocess.Popen(
        kit.command("minimize", "--engine", "host", *arguments),
        cwd=kit.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 120
    while len(ran(kit)) < number and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def ran(kit):
    """Processes of altered trials: those that the journal holds."""
    return [line for file in kit.state.glob("minimize/*.jsonl") for line in file.read_text().splitlines()]


def begun(kit):
    return {path.parent.name for path in kit.state.glob("minimize/*/request.json")}


def test_a_killed_search_goes_on_where_it_stopped(kit):
    """Killed twice; then the same answer as without, and no process ran twice but those that were killed."""
    kit.plant(DICE)
    options = ("--seed", 1, "--seeds", 3)
    killed(kit, 2, *options)
    first = ran(kit)
    killed(kit, len(first) + 2, *options)
    assert ran(kit)[: len(first)] == first
    told = minimize(kit, *options)
    assert [one["to"] for one in told["changes"]] == ["3"]
    assert told["processes"] == len(ran(kit)) <= len(begun(kit)) <= told["processes"] + 2
    before = begun(kit)
    assert minimize(kit, *options) == told
    assert begun(kit) == before
    anew = minimize(kit, *options, "--fresh")
    assert len(begun(kit)) == len(before) + told["processes"]
    for each in (*told["steps"], *anew["steps"], told, anew):
        assert each.pop("seconds") > 0
    assert anew == told


def test_a_failure_by_chance(kit):
    """It fails in half of all runs, whatever the seed, with 7 faces or more; chance may keep a few faces."""
    kit.plant(
        """
        import os
        FACES, ROLLS = 20, 30

        def test_it():
            assert FACES < 7 or os.urandom(1)[0] % 2
        """
    )
    told = minimize(kit, "--seed", 3)
    assert told["by"] == "rate"
    (faces,) = told["constants"].values()
    assert 7 <= faces < 20
    assert told["again"]["failed"] > 0


def test_a_seed_that_passes(kit):
    kit.plant("def test_it():\n    pass\n")
    assert "0 of 1000 trials failed" in kit.complaint("minimize", "--seed", 3, "--engine", "host", status=6)
    assert "repro matrix" in kit.complaint("minimize", "--engine", "host", status=6)
