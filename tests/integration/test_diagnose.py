"""`repro diagnose` over subjects with one planted cause each, among decoys; and over what has none."""

import json
import os
import subprocess

import planting
import pytest
from command_line import REPRO

pytestmark = pytest.mark.slow
pytest.importorskip("torch")


@pytest.fixture
def diagnose(tmp_path):
    def run(*arguments):
        command = [*REPRO, "diagnose", "--engine", "host", "--state", "state", "--json", *arguments]
        environment = {**os.environ, "TRITON_INTERPRET": "1"}
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False, env=environment
        )
        assert done.stdout or done.returncode, done.stderr
        return done

    return run


@pytest.mark.parametrize("name", [name for name in planting.names() if planting.cause(name)])
def test_the_planted_cause_comes_first(diagnose, tmp_path, name):
    planting.plant(tmp_path, name, decoys=True)
    done = diagnose()
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == json.loads((tmp_path / "state" / "diagnosis.json").read_text())
    verdicts = {cause["name"]: (cause["verdict"], cause["evidence"]) for cause in told["causes"]}
    assert told["causes"][0]["name"] == planting.cause(name), verdicts
    assert told["causes"][0]["verdict"] == "supported", verdicts
    assert told["causes"][0]["share"] > 0.5
    assert all(evidence for _, evidence in verdicts.values())


def test_a_test_that_never_fails(diagnose, tmp_path):
    planting.plant(tmp_path, "clean", decoys=True)
    done = diagnose("--trials", "60")
    assert done.returncode == 6
    assert "failed in none of 60 trials" in done.stderr
    assert "4.9 % or more would have shown" in done.stderr
    assert not (tmp_path / "state" / "diagnosis.json").exists()


def test_a_test_that_always_fails(diagnose, tmp_path):
    planting.plant(tmp_path, "clean", decoys=False)
    test = tmp_path / "subject" / "test_planted.py"
    test.write_text(test.read_text().replace("2 * x.detach()", "3 * x.detach()"))
    told = json.loads(diagnose("--trials", "60").stdout)
    assert told["failed"] == told["trials"] == 60
    assert any("every time, whatever the seed" in line for line in told["conclusion"])
    assert told["causes"][0]["name"] == "wrong formula or border rule"


def test_a_test_that_is_not_there(diagnose, tmp_path):
    planting.plant(tmp_path, "clean", decoys=False)
    done = diagnose("--test", "test_other")
    assert done.returncode in (2, 6)
    assert "test_other" in done.stderr
    assert "Traceback" not in done.stderr
