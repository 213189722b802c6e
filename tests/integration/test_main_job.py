"""The main job over planted subjects: rates known beforehand, and tests that die, hang and eat memory."""

import random

import pytest
from command_line import Kit, git

pytestmark = pytest.mark.slow
SEEDS = 200
FLAKY = "def test_it():\n    assert random.random() >= 0.3\n"
FAILING = {seed for seed in range(SEEDS) if random.Random(seed).random() < 0.3}
ENGINES = ["host", "venv", pytest.param("docker", marks=pytest.mark.docker)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One state folder for all tests: environments are made once. Subjects differ, so trials do not mix."""
    return tmp_path_factory.mktemp("shared") / ".repro"


@pytest.fixture
def kit(tmp_path, shared):
    return Kit(tmp_path, shared)


@pytest.fixture
def own(tmp_path):
    """With a state folder of its own."""
    return Kit(tmp_path, tmp_path / ".repro")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_planted_rate_is_found_by_every_engine(kit, engine):
    """The same seeds fail everywhere, so this cannot flake: 62 of 200."""
    assert len(FAILING) == 62
    tritons = '"3.7.1", "3.8.0"' if engine == "docker" else '"3.7.1"'
    kit.plant(f"# {engine}\n{FLAKY}", triton=tritons)
    told = kit.matrix("--engine", engine, "--trials", SEEDS)
    assert len(told["cells"]) == (2 if engine == "docker" else 1)
    for cell in told["cells"]:
        assert cell["state"] == "done"
        assert (cell["rate"]["failed"], cell["rate"]["trials"]) == (62, SEEDS)
        assert cell["rate"]["low"] < 0.3 < cell["rate"]["high"]
    failing = {seed: "FAILED" if seed in FAILING else "PASSED" for seed in range(SEEDS)}
    assert kit.outcomes(told) == {cell["id"]: failing for cell in told["cells"]}


BREAKING = """
import os, signal, time

def test_it():
    number = seed()
    if number == 3:
        os._exit(7)
    if number == 5:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 9:
        time.sleep(600)
    if number == 12:
        held = []
        while len(held) < 200:
            held.append(bytearray(b"x" * (16 << 20)))
            time.sleep(0.01)
    if number == 14:
        raise KeyError("another failure")
    assert number % 4
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_test_that_breaks_its_process_costs_those_trials_only(kit, engine):
    kit.plant(f"# {engine}\n{BREAKING}")
    told = kit.matrix("--engine", engine)
    (outcomes,) = kit.outcomes(told).values()
    other = {3: "CRASHED", 5: "CRASHED", 9: "TIMED_OUT", 12: "CRASHED", 14: "FAILED_OTHERWISE"}
    expected = {seed: "PASSED" if seed % 4 else "FAILED" for seed in range(20)} | other
    assert outcomes == expected
    (cell,) = told["cells"]
    assert cell["others"] == {"CRASHED": 3, "FAILED_OTHERWISE": 1, "TIMED_OUT": 1}
    assert cell["rate"]["trials"] == 15
    messages = kit.messages(told)
    assert messages[3].startswith("the process ended with status 7")
    assert "signal 11" in messages[5]
    assert messages[9] == "no sign of life for 3 s; the process was killed"
    assert messages[12].startswith("the process ran out of memory")


@pytest.mark.docker
def test_a_test_that_one_cell_lacks_is_missing_there_alone(kit):
    code = """
    from importlib.metadata import version
    if version("triton") == "3.7.1":
        def test_it():
            assert seed() % 2
    """
    kit.plant(code, triton='"3.7.1", "3.8.0"')
    here, lacking = kit.matrix("--engine", "docker")["cells"]
    assert (here["state"], here["rate"]["failed"], here["rate"]["trials"]) == ("done", 10, 20)
    assert (lacking["state"], lacking["rate"]["trials"]) == ("broken", 0)
    assert lacking["others"] == {"TEST_MISSING": 1}
    assert "the file has no test 'test_it'" in lacking["note"]


def test_a_subject_from_git_at_a_revision(own):
    own.plant("def test_it():\n    assert seed() % 2\n")
    repository = own.home / "subject"
    git(repository, "init", "-q", "-b", "main")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "flaky")
    flaky = git(repository, "rev-parse", "HEAD")
    git(repository, "tag", "v1")
    (repository / "test_planted.py").write_text("def test_it():\n    pass\n")
    git(repository, "commit", "-q", "-a", "-m", "steady")
    for revision, failed in ((flaky, 10), ("v1", 10), ("main", 0)):
        told = own.matrix("--engine", "host", "--subject", f"file://{repository}@{revision}")
        assert told["cells"][0]["rate"]["failed"] == failed
        if failed:
            assert told["subject"]["revision"] == flaky


def test_a_test_file_of_the_users_own(own):
    own.plant("def test_it():\n    pass\n")
    (own.home / "subject" / "kernels.py").write_text("def halves(number):\n    return number % 2\n")
    test = "import kernels\ndef test_mine():\n    assert kernels.halves(seed())\n"
    own.elsewhere("test_mine.py", test)
    told = own.matrix("--engine", "host", "--test-file", "elsewhere/test_mine.py", "--test", "test_mine")
    assert told["cells"][0]["rate"]["failed"] == 10
    assert "+test-" in told["subject"]["revision"]


def test_a_unittest_case(own):
    code = """
    import unittest
    class TestOp(unittest.TestCase):
        def setUp(self):
            self.number = seed()
        def test_it(self):
            self.assertTrue(self.number % 2)
    """
    own.plant(code, test="TestOp::test_it")
    assert own.matrix("--engine", "host")["cells"][0]["rate"]["failed"] == 10


def test_modes_are_kept_apart(own):
    own.plant("def test_it():\n    assert seed() % 2\n")
    rates = {}
    for mode in ("seeds", "fresh", "repeat"):
        told = own.matrix("--engine", "host", "--mode", mode, "--trials", 4, "--first-seed", 6)
        rates[mode] = (told["cells"][0]["rate"]["failed"], told["cells"][0]["rate"]["trials"])
    assert rates == {"seeds": (2, 4), "fresh": (2, 4), "repeat": (4, 4)}
    assert len(list((own.state / "blocks").iterdir())) == 1 + 4 + 1
