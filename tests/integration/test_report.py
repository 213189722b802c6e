"""`repro report`, `export` and `merge` over planted subjects, and the page in a real browser."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import browser
import pytest
from command_line import Kit

pytestmark = pytest.mark.slow

FLAKE = """
    import pytest, torch

    @pytest.fixture
    def size():
        return 32

    @pytest.fixture
    def data(size):
        yield torch.rand(size)

    @pytest.mark.parametrize("shift", [1.0, None])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
    def test_it(dtype, shift, data, record_property, tmp_path):
        assert tmp_path.is_dir()
        record_property("dtype", str(dtype))
        expected = torch.rand(8, 4).to(dtype)
        actual = expected.clone()
        if data[0] < 0.3:
            actual[int(data[1] * 8), 2] += shift
        torch.testing.assert_close(expected, expected + 0)
        torch.testing.assert_close(actual, expected, msg=lambda text: text + " in /home/carol/secret/op.py")
"""
TEST = "test_it[float32-1.0]"


def tried(kit: Kit, code: str, test: str = "test_it", trials: int = 20) -> Kit:
    kit.plant(code, test=test if "[" not in test else f'"{test}"')
    matrix = (kit.home / "matrix.yaml").read_text()
    (kit.home / "matrix.yaml").write_text(
        matrix.replace("600m", "3000m").replace("trial_timeout: 3s", "trial_timeout: 90s")
    )
    kit.run("matrix", "--engine", "host", "--half-width", 0, "--trials", trials)
    return kit


@pytest.fixture
def kit(tmp_path):
    return Kit(tmp_path, tmp_path / ".repro")


@pytest.fixture(scope="module")
def flake(tmp_path_factory):
    """A flake with tensors, tried and reported."""
    home = tmp_path_factory.mktemp("flake")
    kit = tried(Kit(home, home / ".repro"), FLAKE, TEST)
    (kit.state / "diagnosis.json").write_text(json.dumps({"causes": [
        {"name": "a planted cause", "verdict": "supported", "evidence": ["the test says so"], "share": 1.0},
    ]}))  # fmt: skip
    told = json.loads(kit.run("report", "--engine", "host", "--json"))
    return kit, told


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def report(kit: Kit, *arguments) -> str:
    """Report; the issue text."""
    kit.run("report", "--engine", "host", *arguments)
    return (kit.state / "report" / "report.md").read_text()


def test_a_flake_is_reported(flake):
    kit, told = flake
    failed = told["rates"][0]["rate"]["failed"]
    assert 1 <= failed <= 15
    text = (kit.state / "report" / "report.md").read_text()
    assert text.startswith(
        f"# test\\_it\\[float32-1.0\\] fails in {100 * failed / 20:.1f} % of trials ({failed}/20)"
    )
    assert told["verdict"]["Why"].startswith("A planted cause (100 % of the failing elements)")
    assert f"{failed} of {failed} failures looked at: comparison 1" in told["verdict"]["What fails"]
    assert "Mismatched elements: 1 / 32" in text  # what the script printed


def test_the_script_that_is_printed_is_the_one_that_ran(flake):
    kit, told = flake
    script = (kit.state / "report" / "script.py").read_text()
    assert told["script"]["shown"]
    assert len(script.splitlines()) <= 80
    assert f"```python\n{script.rstrip()}\n```" in (kit.state / "report" / "report.md").read_text()
    assert 'LINE = "AssertionError", "torch.testing.assert_close(actual, expected, msg=' in script
    assert "pytest" not in [line.split()[1] for line in script.splitlines() if line.startswith("import ")]
    ran = [path for path in kit.state.glob("scripts/*/script.py") if path.read_text() == script]
    assert len(ran) == 1
    printed = (ran[0].parent / "output.log").read_text()
    again = subprocess.run(
        [sys.executable, str(kit.state / "report" / "script.py")],
        cwd=kit.home / "subject",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (again.returncode, again.stdout) == (1, printed)


def test_the_archive_holds_the_evidence(flake):
    kit, _ = flake
    with zipfile.ZipFile(kit.state / "report" / "report.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop("manifest.json"))
    assert {name: facts["sha256"] for name, facts in manifest["files"].items()} == {
        name: hashlib.sha256(content).hexdigest() for name, content in files.items()
    }
    assert {"report.md", "report.html", "script.py", "ledger.sqlite", "environment.json", "rates.csv"} <= set(
        files
    )
    assert any(name.startswith("inputs/") for name in files)


def test_nothing_identifies_unless_asked(flake, tmp_path):
    kit, _ = flake
    kit.run("report", "--engine", "host", "--no-script", "--no-redact", "--out", tmp_path / "open")
    for folder, there in ((kit.state / "report", False), (tmp_path / "open", True)):
        texts = [(folder / name).read_bytes() for name in ("report.md", "report.html")]
        with zipfile.ZipFile(folder / "report.zip") as archive:
            texts += [archive.read(name) for name in archive.namelist() if not name.startswith("inputs/")]
        assert any(b"carol" in text for text in texts) == there


def test_a_dry_run_writes_nothing(flake):
    kit, _ = flake
    before = contents(kit.home)
    told = kit.run("report", "--engine", "host", "--dry-run", "--out", kit.home / "new")
    assert contents(kit.home) == before
    assert "/home/carol/secret/op.py" in told
    assert "<path>/op.py" in told
    assert "report.zip: ledger.sqlite" in told


def test_a_failure_that_the_seed_does_not_decide(kit):
    tried(
        kit, "import os\ndef test_it():\n    draw = os.urandom(1)[0]\n    assert draw > 50, draw\n", trials=60
    )
    text = report(kit)
    assert "as it promises" in text
    assert "AssertionError at assert draw > 50, draw" in text


def test_a_test_that_never_fails(kit):
    tried(kit, "def test_it():\n    pass\n")
    text = report(kit)
    assert "has not failed in 20 trials" in text
    assert "There is none: no trial has failed, so there is nothing to show." in text
    assert not (kit.state / "report" / "script.py").exists()


def test_a_test_that_always_fails(kit):
    tried(kit, "def test_it():\n    assert seed() < 0\n")
    text = report(kit)
    assert "Every trial fails: this is no flake." in text
    assert "no tensor comparison failed there" in text
    assert "as it promises" in text


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("def test_it(capsys):\n    assert seed() % 2\n", "it needs the fixture capsys"),
        (
            "def setup_module():\n    pass\ndef test_it():\n    assert seed() % 2\n",
            "it relies on setup_module",
        ),
    ],
)
def test_a_test_that_needs_pytest(kit, code, why):
    text = report(tried(kit, code))
    assert f"There is none: the test cannot be called without pytest: {why}" in text.replace("\\_", "_")


def test_classes_and_fixtures(kit):
    code = """
        import pytest, unittest

        class Level:
            HIGH = 7

        @pytest.fixture(params=[3, 5])
        def base(request):
            return request.param

        @pytest.fixture(autouse=True)
        def armed():
            Level.HIGH = 8

        @pytest.fixture
        def both(base, armed):
            return base + Level.HIGH

        class TestIt:
            def setup_method(self):
                self.ready = True

            @pytest.mark.parametrize("kind", [Level])
            def test_it(self, both, kind, monkeypatch):
                monkeypatch.setenv("X", "1")
                assert self.ready and both == 13 and kind is Level
                assert seed() % 2
    """
    text = report(tried(kit, code, "TestIt::test_it[5-Level]"))
    assert "as it promises" in text
    assert "request=types.SimpleNamespace(param=5)" in text
    assert "kind=test.Level" in text


def test_a_unittest_class(kit):
    code = """
        import unittest

        class TestIt(unittest.TestCase):
            def setUp(self):
                self.limit = 0.5

            def test_it(self):
                import random
                self.assertGreater(random.random(), self.limit)
    """
    text = report(tried(kit, code, "TestIt::test_it"))
    assert "as it promises" in text
    assert ".debug()" in text


def test_the_subject_has_changed_since(kit):
    tried(kit, "def test_it():\n    assert seed() % 2\n")
    kit.plant("def test_it():\n    assert seed() >= 0\n")
    assert "as it promises" in report(kit)
    remove(kit.state / "subjects")
    assert "the trials are of revision" in report(kit)


def remove(folder: Path) -> None:
    for path, _, _ in os.walk(folder):
        Path(path).chmod(0o755)
    shutil.rmtree(folder)


def test_without_a_matrix_the_rest_is_reported(flake, tmp_path):
    kit, _ = flake
    (tmp_path / "state").mkdir()
    shutil.copy(kit.state / "ledger.sqlite", tmp_path / "state")
    other = Kit(tmp_path, tmp_path / "state")
    text = report(other)
    assert "There is none: no cell could run it:" in text
    assert "## Failure rates" in text


def test_no_ledger(kit):
    assert "there is no ledger" in kit.complaint("report", status=2)
    assert "there is no ledger" in kit.complaint("export", "--csv", status=2)
    assert "no form was named" in kit.complaint("export", status=2)
    assert "no ledger" in kit.complaint("merge", kit.home / "nothing.sqlite", status=2).lower()


def test_export(flake, tmp_path):
    kit, told = flake
    rows = kit.run("export", "--csv").splitlines()
    assert rows[0].startswith("cell,revision,test,mode,gpu,failed,trials,rate,low,high")
    assert f",{told['rates'][0]['rate']['failed']},20," in rows[1]
    kit.run("export", "--junit", "--out", tmp_path / "x" / "junit.xml")
    assert "<testsuites" in (tmp_path / "x" / "junit.xml").read_text()
    (job,) = json.loads(kit.run("export", "--github-matrix", "--profile", "cpu"))["include"]
    assert (job["torch"], job["triton"], job["cell"]) == (
        "2.13.0",
        "3.7.1",
        "torch2.13.0-triton3.7.1-cpu-py311",
    )
    assert job["cell"] in job["command"]


def test_merged_ledgers_give_a_column_for_each_gpu_model(flake, tmp_path):
    kit, _ = flake
    theirs = tmp_path / "theirs" / ".repro" / "blocks"
    shutil.copytree(kit.state / "blocks", theirs)
    for folder in theirs.iterdir():
        folder.rename(folder.with_name("t" + folder.name))
    for path in theirs.glob("*/records.jsonl"):
        path.write_text(path.read_text().replace('"gpu": null', '"gpu": {"name": "NVIDIA H100"}'))
    other = Kit(tmp_path, theirs.parent)
    other.run("status")
    mine = Kit(tmp_path, tmp_path / "mine")
    shutil.copytree(kit.state / "blocks", mine.state / "blocks")
    added = json.loads(mine.run("merge", theirs.parent, "--json"))
    assert list(added["added"].values()) == [20]
    assert added["trials"] == {"CPU": 20, "NVIDIA H100": 20}
    assert "0 new trials" in mine.run("merge", theirs.parent / "ledger.sqlite")
    mine.run("report", "--no-script")
    assert "| cell | CPU | NVIDIA H100 |" in (mine.state / "report" / "report.md").read_text()


needs_browser = pytest.mark.skipif(browser.BROWSER is None, reason=browser.WHY_NOT)


@needs_browser
@pytest.mark.parametrize(("width", "height"), [(1100, 700), (500, 800)])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_in_a_browser(flake, tmp_path, width, height, dark):
    kit, _ = flake
    page = kit.state / "report" / "report.html"
    seen = browser.screenshot(page, tmp_path / "page.png", width=width, height=height, dark=dark)
    assert (seen.width, seen.height) == (width, height)
    assert seen.background < 60 if dark else seen.background > 200
    assert seen.colours > 50
    accent = (0xEE, 0x8A, 0x68) if dark else (0xB3, 0x46, 0x2C)
    assert 0 < seen.share(accent) < 0.1


@needs_browser
@pytest.mark.parametrize("width", [360, 1100])
def test_the_page_is_as_wide_as_its_window(flake, tmp_path, width):
    kit, _ = flake
    told = browser.measure(kit.state / "report" / "report.html", tmp_path, width=width)
    assert told["wide"] == width
    assert told["charts"] == 1 + 1 + 2  # a cell, the errors, two dimensions
    assert told["narrowest"] > 150
    assert told["lowest"] > 10
    assert told["smallest"] >= 12
