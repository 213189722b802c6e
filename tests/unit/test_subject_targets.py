"""How the test file and the test in it are found."""

from collections.abc import Callable
from pathlib import Path

import pytest
from subject_folders import committed, fill, resolver

from repro.errors import UsageError
from repro.subject import Subject


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return committed(fill(tmp_path / "repository"))


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., Subject]:
    return resolver(tmp_path)


def test_a_file_of_the_users_own(repository, get, tmp_path, monkeypatch):
    own = tmp_path / "test_mine.py"
    own.write_text("def test_mine():\n    pass\n")
    monkeypatch.chdir(tmp_path)
    subject = get(repository, test_file="test_mine.py", test="test_mine")
    assert subject.test_file == "test_mine.py"
    assert subject.own_test_file is not None
    assert subject.own_test_file.read_text() == own.read_text()
    assert subject.revision.startswith(f"{subject.commit}+test-")
    own.write_text("def test_mine():\n    assert False\n")
    assert get(repository, test_file="test_mine.py", test="test_mine").revision != subject.revision


def test_a_file_inside_named_from_the_current_folder(repository, get, monkeypatch):
    monkeypatch.chdir(repository / "tests")
    assert get(repository, test_file="test_kernels.py").test_file == "tests/test_kernels.py"
    assert get(repository).test_file == "tests/test_kernels.py"
    assert get(repository, test_file=str(repository / "tests/test_kernels.py")).own_test_file is None


def test_a_missing_test_file_names_the_nearest(repository, get):
    with pytest.raises(UsageError) as caught:
        get(repository, test_file="tests/test_kernel.py")
    assert caught.value.what == "there is no test file `tests/test_kernel.py` in the subject"
    assert caught.value.why == "the nearest are `tests/test_kernels.py`"
    assert caught.value.next_step == "correct subject.test_file in matrix.yaml, or give --test-file"


def test_a_missing_test_names_the_nearest(repository, get):
    with pytest.raises(UsageError) as caught:
        get(repository, test="test_backwards[float32-border-False]")
    assert caught.value.what == "there is no test `test_backwards` in test_kernels.py"
    assert caught.value.why == "the nearest are `test_backward`"
    assert caught.value.next_step == "correct subject.test in matrix.yaml, or --test"


@pytest.mark.parametrize(
    "source", ["from base import *\n", "class TestA(Base):\n    pass\n", "def broken(:\n"]
)
def test_tests_that_may_come_from_elsewhere_are_left_to_the_cell(repository, get, source):
    (repository / "tests/test_kernels.py").write_text(source)
    assert get(repository, test="TestA::test_inherited").test == "TestA::test_inherited"


@pytest.mark.parametrize("base", ["unittest.TestCase", "object"])
def test_a_class_of_unittest_hides_nothing(repository, get, base):
    (repository / "tests/test_kernels.py").write_text(f"class TestA({base}):\n    def test_b(self): ...\n")
    assert get(repository, test="TestA::test_b").test == "TestA::test_b"
    with pytest.raises(UsageError, match="there is no test `test_c`"):
        get(repository, test="TestA::test_c")
