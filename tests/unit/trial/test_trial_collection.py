"""Finding the test, whatever its repository looks like."""

import ast
import json
import shutil
import subprocess
import sys

import pytest

from repro.trial.selection import matching, matching_glob, nearest

PARAMETRIZED = (
    "import pytest\n"
    "@pytest.mark.parametrize('dtype', ['float32', 'float64'])\n"
    "def test_backward(dtype): pass\n"
    "@pytest.mark.parametrize('one', [1])\n"
    "def test_single(one): pass\n"
)
IDS = ["test_backward[float32]", "test_backward[float64]", "test_single[1]", "TestA::test_m", "TestB::test_m"]

pytestmark = pytest.mark.slow  # a process of its own for each test


def test_ids_match_as_users_write_them():
    assert matching("test_backward[float32]", IDS) == IDS[:1]
    assert matching("tests/test_a.py::test_backward[float32]", IDS) == IDS[:1]
    assert matching("test_backward", IDS) == IDS[:2]
    assert matching("test_single", IDS) == ["test_single[1]"]
    assert matching("test_m", IDS) == IDS[3:]
    assert matching("TestB::test_m", IDS) == IDS[4:]
    assert matching("test_nothing", IDS) == []


def test_globs_leave_brackets_alone():
    assert matching_glob("test_backward[*]", IDS) == IDS[:2]
    assert matching_glob("test_backward[float?2]", IDS) == IDS[:1]
    assert matching_glob("*", IDS) == IDS
    assert matching_glob("test_backward", IDS) == IDS[:2]


def test_the_nearest_ids_come_first():
    assert set(nearest("test_backward[float16]", IDS)[:2]) == set(IDS[:2])
    assert nearest("test_bakward", IDS)[0].startswith("test_backward")


@pytest.mark.parametrize(
    ("test", "reason", "near"),
    [
        ("test_backward", "ambiguous", "test_backward[float32]"),
        ("test_backward[float16]", "absent", "test_backward[float32]"),
        ("test_singel", "absent", "test_single[1]"),
    ],
)
def test_missing_names_the_nearest(run_block, test, reason, near):
    done = run_block({"test_subject.py": PARAMETRIZED}, test)
    assert [event["event"] for event in done.events] == ["cell", "missing"]
    assert done.status == 0
    missing = done.events[-1]
    assert (missing["reason"], missing["outcome"]) == (reason, "TEST_MISSING")
    assert near in missing["nearest"]


def test_a_name_with_one_parametrization_is_enough(run_block):
    assert run_block({"test_subject.py": PARAMETRIZED}, "test_single").outcomes == ["PASSED"] * 3


@pytest.mark.parametrize("name", ["test_it[ünï→ x]", r"test_it[\xfcn\xef\u2192 x]", "test_it[a::b/[1]]"])
def test_a_case_in_any_writing(run_block, name):
    text = "import pytest\n@pytest.mark.parametrize('s', ['ünï→ x', 'a::b/[1]', 'ü'])\ndef test_it(s): pass\n"
    assert run_block({"test_subject.py": text}, name).outcomes == ["PASSED"] * 3


def test_a_list_of_ids(run_block):
    done = run_block({"test_subject.py": PARAMETRIZED}, "test_b*", expand="list")
    assert done.of("tests")[0]["ids"] == ["test_backward[float32]", "test_backward[float64]"]
    assert done.events[-1]["event"] == "block_end"


@pytest.mark.parametrize(
    ("files", "reason", "outcome", "says"),
    [
        ({"test_subject.py": "import nothing_such\n"}, "collection", "FAILED_OTHERWISE", "nothing_such"),
        ({"test_subject.py": "def test_it(:\n"}, "collection", "FAILED_OTHERWISE", "SyntaxError"),
        (
            {"test_subject.py": "import pytest\npytest.skip('no GPU', allow_module_level=True)\n"},
            "collection",
            "SKIPPED",
            "no GPU",
        ),
        (
            {"test_subject.py": "def test_it(): pass\n", "conftest.py": "import nothing_such\n"},
            "configuration",
            "FAILED_OTHERWISE",
            "nothing_such",
        ),
        ({"test_other.py": ""}, "file", "TEST_MISSING", "test_subject.py"),
    ],
)
def test_why_nothing_could_run(run_block, files, reason, outcome, says):
    done = run_block(files)
    missing = done.events[-1]
    assert (missing["event"], missing["reason"], missing["outcome"]) == ("missing", reason, outcome)
    assert says in missing["message"]


@pytest.mark.parametrize(
    "files",
    [
        {"pytest.ini": "[pytest]\naddopts = --cov=x -n auto --none\nrequired_plugins = none-such\n"},
        {"setup.cfg": "[tool:pytest]\naddopts = -p not_installed_here --import-mode=importlib\n"},
        {"tox.ini": "[pytest]\naddopts = --reruns 3\n"},
    ],
)
def test_options_of_absent_plugins_do_no_harm(run_block, files):
    subject = {"test_subject.py": "def test_it(): pass\n", **files}
    done = run_block(subject, env={"PYTEST_ADDOPTS": "--no-such"})
    assert done.outcomes == ["PASSED"] * 3, done.stderr


MARKED = "import pytest\n@pytest.mark.asyncio\n@pytest.mark.timeout(3)\ndef test_it(): pass\n"


@pytest.mark.parametrize(
    "files",
    [
        {"pytest.ini": "[pytest]\naddopts = -W error --strict-markers\nasyncio_mode = auto\n"},
        {"setup.cfg": "[tool:pytest]\nfilterwarnings = error\ntimeout = 60\nxfail_strict = true\n"},
        {"pytest.ini": "[pytest]\nstrict_config = true\nstrict_markers = true\ntimeout = 60\n"},
        {"pytest.ini": "[pytest]\nstrict = true\ntimeout = 60\n"},
    ],
)
def test_strictness_does_not_ask_for_absent_plugins(run_block, files):
    done = run_block({"test_subject.py": MARKED, **files})
    assert done.outcomes == ["PASSED"] * 3, done.stderr


def test_what_stops_pytest_itself_is_told(run_block):
    broken = "def pytest_collection_modifyitems(items): raise LookupError('no such device')\n"
    done = run_block({"test_subject.py": "def test_it(): pass\n", "conftest.py": broken})
    missing = done.events[-1]
    assert (missing["event"], missing["reason"]) == ("missing", "configuration")
    assert missing["message"] == "LookupError: no such device"


def test_a_plugin_named_in_addopts_is_kept(run_block, tmp_path):
    files = {
        "lib/helper.py": "import pytest\n@pytest.fixture\ndef helped(): return 1\n",
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['-n', 'auto', '-p', 'helper']\n",
        "test_subject.py": "def test_it(helped): assert helped\n",
    }
    done = run_block(files, python_path=[str(tmp_path / "subject" / "lib")])
    assert done.outcomes == ["PASSED"] * 3, done.stderr


def test_filterwarnings_hold(run_block):
    files = {
        "pytest.ini": "[pytest]\nfilterwarnings = error\n",
        "test_subject.py": "import warnings\ndef test_it(): warnings.warn('odd')\n",
    }
    done = run_block(files, signature={"exception": "UserWarning"})
    assert done.outcomes == ["FAILED"] * 3


def test_a_file_outside_the_root_uses_the_subjects_fixtures(run_block, tmp_path):
    outside = tmp_path / "outside" / "test_mine.py"
    outside.parent.mkdir()
    outside.write_text("import beside\ndef test_it(given): assert given == beside.VALUE\n")
    (outside.parent / "beside.py").write_text("VALUE = 5\n")
    conftest = "import pytest\n@pytest.fixture\ndef given(): return 5\n"
    root = tmp_path / "subject"
    done = run_block(
        {"conftest.py": conftest, "pytest.ini": "[pytest]\n"},
        test_file=str(outside),
        python_path=[str(root)],
    )
    assert done.outcomes == ["PASSED"] * 3, done.stderr + str(done.events[-1])


def test_a_read_only_subject_stays_as_it_is(run_block, tmp_path):
    run_block({"conftest.py": "", "test_subject.py": "def test_it(tmp_path): assert tmp_path.exists()\n"})
    assert sorted(path.name for path in (tmp_path / "subject").rglob("*")) == [
        "conftest.py",
        "test_subject.py",
    ]


def test_a_bad_request_is_one_line(run_block):
    done = run_block({"test_subject.py": ""}, seeds="many")
    assert done.status == 2
    assert done.stderr == "bad request: seeds must be a list of whole numbers\n"


def test_it_needs_neither_torch_nor_numpy(run_block, tmp_path):
    blocker = tmp_path / "blocked"
    for name in ("torch", "numpy", "triton"):
        (blocker / name).mkdir(parents=True)
        (blocker / name / "__init__.py").write_text(f"raise ImportError('no {name}')\n")
    text = (
        "def test_it():\n    try:\n        import torch\n    except ImportError: return\n    assert False\n"
    )
    done = run_block({"test_subject.py": text}, python_path=[str(blocker)], keep_inputs=2)
    assert done.outcomes == ["PASSED"] * 3
    assert done.of("cell")[0]["imported"] == []


def test_the_cell_line_tells_where_it_ran(run_block):
    env = {"TRITON_INTERPRET": "1", "CUBLAS_WORKSPACE_CONFIG": ":16:8", "PYTHONHASHSEED": "3"}
    cell = run_block({"test_subject.py": "def test_it(): pass\n"}, env=env, block="b", cell="c").events[0]
    assert cell["event"] == "cell"
    assert cell["python"] == ".".join(map(str, sys.version_info[:3]))
    assert cell["pytest"] == pytest.__version__
    assert cell["interpreter"] is True
    assert env.items() <= cell["env"].items()
    assert (cell["block"], cell["cell"], cell["schema"]) == ("b", "c", 1)


def test_the_package_is_python_39(kit):
    for path in (kit / "repro_trial").rglob("*.py"):
        tree = ast.parse(path.read_text(), feature_version=(3, 9))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert any(node.module == "__future__" for node in imports) or path.name == "__init__.py"


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13"])
def test_other_pythons(run_block, version):
    python = shutil.which(f"python{version}")
    found = python and subprocess.run([python, "-c", "import pytest"], capture_output=True, check=False)
    if not found or found.returncode:
        pytest.skip(f"no Python {version} with pytest on PATH")
    text = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.assertEqual(1, 2)\n"
    done = run_block({"test_subject.py": text}, python=python)
    assert done.outcomes == ["FAILED"] * 3, json.dumps(done.events[-1]) + done.stderr
