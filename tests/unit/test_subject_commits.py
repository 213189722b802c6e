"""Any commit of a history as a subject: its layout, its tests or those of another commit, or none at all."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from subject_folders import TEST, commit, committed, fill, git, names, write

from repro.config import SubjectSpec
from repro.errors import NotReadyError, UsageError
from repro.subject import Subject, open_repository, resolve, resolve_commit
from repro.subject.placing import LAYOUT

TEST_FILE = "tests/test_kernels.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return committed(fill(tmp_path / "repository"))


@pytest.fixture
def get(folder: Path, tmp_path: Path) -> Callable[..., Subject]:
    """`resolve_commit` with the kit's folder in `tmp_path`, for the folder's test unless told otherwise."""

    def get(
        commit: str, *, test_file: str | None = None, tests_from: str | None = None, **given: object
    ) -> Subject:
        fields = {"path": str(folder), "test_file": TEST_FILE, "test": "test_backward", **given}
        spec, state = SubjectSpec(base=tmp_path, **fields), tmp_path / "state"
        repository = open_repository(spec, state)
        return resolve_commit(
            spec, repository, commit, state=state, test_file=test_file, tests_from=tests_from
        )

    return get


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD")


def test_a_commit_is_what_resolve_makes_of_it(folder, get, tmp_path):
    first = head(folder)
    (folder / "README.md").write_text("edited, and not committed\n")
    found = get(first)
    spec = SubjectSpec(base=tmp_path, path=str(folder), rev=first, test_file=TEST_FILE, test="test_backward")
    assert found == resolve(spec, state=tmp_path / "state")
    assert (found.revision, found.commit) == (first, first)
    assert git(folder, "status", "--porcelain") == "M README.md", "the user's files stay as they are"
    assert git(folder, "worktree", "list").count("\n") == 0


def test_a_commit_of_a_mirror(folder, get):
    first = head(folder)
    found = get(first, path=None, git=folder.as_uri())
    assert (found.revision, found.origin) == (first, folder.as_uri())


def test_nothing_is_fetched(folder, tmp_path):
    spec = SubjectSpec(base=tmp_path, git=folder.as_uri(), test_file=TEST_FILE, test="test_backward")
    repository = open_repository(spec, tmp_path / "state")
    folder.rename(tmp_path / "gone")
    found = resolve_commit(spec, repository, head(tmp_path / "gone"), state=tmp_path / "state")
    assert (found.root / TEST_FILE).read_text() == TEST


def test_a_test_that_is_not_there_is_left_to_the_trial(folder, get):
    assert get(head(folder), test="test_unborn").test == "test_unborn"
    git(folder, "rm", "-qr", "tests")
    found = get(commit(folder))
    assert (found.test_file, found.own_test_file) == (TEST_FILE, None)
    assert not (found.root / TEST_FILE).exists()


def test_the_same_file_is_meant_at_every_commit(folder, get, monkeypatch):
    born = commit(folder)
    git(folder, "rm", "-qr", "tests")
    gone = commit(folder)
    write(folder, {TEST_FILE: TEST})
    monkeypatch.chdir(folder / "tests")
    for given in (TEST_FILE, "test_kernels.py", str(folder / TEST_FILE)):
        for one in (born, gone):
            found = get(one, test_file=given)
            assert (found.test_file, found.own_test_file, found.revision) == (TEST_FILE, None, one)


def test_a_file_of_the_users_own_is_used_for_every_commit(folder, get, tmp_path, monkeypatch):
    write(tmp_path, {"test_mine.py": "def test_backward(): ...\n"})
    monkeypatch.chdir(tmp_path)
    first = head(folder)
    write(folder, {"test_mine.py": ""})
    second = commit(folder)
    git(folder, "rm", "-q", "test_mine.py")
    commit(folder)
    found = [get(one, test_file="test_mine.py") for one in (first, second)]
    assert len({subject.own_test_file for subject in found}) == 1
    assert [subject.revision.partition("+test-")[0] for subject in found] == [first, second]


def test_each_commit_has_its_own_layout(folder, get):
    flat = head(folder)
    (folder / "src").mkdir()
    git(folder, "mv", "kernels", "src/kernels")
    moved = commit(folder)
    assert (get(flat).python_path, get(moved).python_path) == ((".",), ("src",))
    given = ("src", "tests")
    assert get(moved, python_path=given).python_path == given
    assert get(flat, python_path=given).python_path == (".", "tests")


def test_package_metadata_belongs_to_the_commit(folder, get):
    before = head(folder)
    write(folder, {"pyproject.toml": '[project]\nname = "kernels"\nversion = "1.0"\n'})
    after = commit(folder)
    assert get(before).python_path == (".",)
    found = get(after, python_path=(".",))
    assert found.python_path == (".", ".repro-metadata")
    assert (found.root / ".repro-metadata/kernels-1.0.dist-info/METADATA").is_file()


# --- tests from another commit ---


def test_the_tests_of_one_commit_against_the_code_of_another(folder, get):
    write(folder, {"tests/old_helper.py": "", "tests/sub/x.py": ""})
    old = commit(folder)
    git(folder, "rm", "-qr", "tests")
    new_tests = {TEST_FILE: "def test_new(): ...\n", "tests/helper.py": ""}
    write(folder, {**new_tests, "kernels/__init__.py": "new\n", "conftest.py": ""})
    new = commit(folder)
    found = get(old, tests_from=new)
    assert found.revision == f"{old}+tests-{new[:12]}"
    assert found.commit == old
    assert [name for name in names(found) if name.startswith("tests/")] == ["tests/helper.py", TEST_FILE]
    assert (found.root / TEST_FILE).read_text() == new_tests[TEST_FILE]
    assert "return 1" in (found.root / "kernels/__init__.py").read_text()
    assert "conftest.py" not in names(found)
    assert get(new, tests_from=new).revision == new
    assert get(old).revision == old


def test_without_a_folder_of_tests_the_file_and_its_conftest_are_taken(folder, get):
    write(folder, {"test_op.py": "old", "kernels/test_op.py": "old", "conftest.py": "old", "other.py": "old"})
    old = commit(folder)
    write(folder, {"test_op.py": "new", "kernels/test_op.py": "new", "conftest.py": "new", "other.py": "new"})
    new = commit(folder)
    root = get(old, test_file="test_op.py", tests_from=new).root
    assert {name: (root / name).read_text() for name in ("test_op.py", "conftest.py", "other.py")} == {
        "test_op.py": "new",
        "conftest.py": "new",
        "other.py": "old",
    }
    assert (root / "kernels/test_op.py").read_text() == "old"


def test_parts_are_named_by_their_content_with_the_tests_of_another_commit_too(folder, get):
    parts = {"files": ("kernels", "tests")}
    old = head(folder)
    write(folder, {TEST_FILE: "new\n"})
    tests = commit(folder)
    write(folder, {"README.md": "new\n"})
    readme = commit(folder)
    mixed = get(old, tests_from=tests, **parts)
    assert mixed.revision.startswith("content-")
    assert mixed.revision == get(readme, **parts).revision == get(old, tests_from=readme, **parts).revision
    assert mixed.revision != get(old, **parts).revision
    assert names(mixed) == ["kernels/__init__.py", TEST_FILE]


def test_tests_from_a_commit_without_them(folder, get, tmp_path):
    git(folder, "rm", "-qr", "tests")
    gone = commit(folder)
    with pytest.raises(UsageError) as caught:
        get("v1.0", tests_from=gone)
    assert caught.value.what == f"commit {gone[:12]} has no test file `{TEST_FILE}`"
    assert caught.value.why == "--tests-from takes the tests of one commit to all others"
    assert caught.value.next_step == "name a commit that has the test, or correct --test-file"
    write(tmp_path, {"test_mine.py": ""})
    with pytest.raises(UsageError) as caught:
        get("v1.0", tests_from=gone, test_file=str(tmp_path / "test_mine.py"))
    assert caught.value.what == "`test_mine.py` is no part of the subject, so no commit has it"
    assert caught.value.next_step == "leave --tests-from out"


# --- parts and folders ---


def test_a_part_may_be_missing_but_not_all_of_them(folder, get):
    first = head(folder)
    found = get(first, files=("kernels", "unborn"))
    assert names(found) == ["kernels/__init__.py"]
    with pytest.raises(UsageError) as caught:
        get(first, files=("unborn",))
    assert caught.value.what == f"commit {first[:12]} has none of `unborn`"
    assert caught.value.next_step == "correct subject.files in matrix.yaml"


def test_a_folder_inside_a_repository_may_be_missing_at_a_commit(folder, get):
    first = head(folder)
    write(folder, {"sub/kernels/__init__.py": "", "sub/tests/test_kernels.py": TEST})
    second = commit(folder)
    found = get(second, path=str(folder / "sub"))
    assert names(found) == ["kernels/__init__.py", TEST_FILE]
    assert found.revision.startswith("content-")
    with pytest.raises(UsageError) as caught:
        get(first, path=str(folder / "sub"))
    assert caught.value.what == f"commit {first[:12]} has no folder `sub`"


def test_an_object_that_is_missing_is_told(folder, get):
    first = head(folder)
    blob = git(folder, "rev-parse", "HEAD:README.md")
    (folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(NotReadyError, match=f"the repository lacks an object: {blob} missing"):
        get(first)


# --- speed and threads ---


def test_a_copy_that_is_there_comes_back_at_once(folder, tmp_path):
    write(folder, {"pyproject.toml": '[project]\nname = "kernels"\nversion = "1.0"\n'})
    spec = SubjectSpec(base=tmp_path, path=str(folder), test_file=TEST_FILE, test="test_backward")
    repository, one = open_repository(spec, tmp_path / "state"), commit(folder)
    first = resolve_commit(spec, repository, one, state=tmp_path / "state")
    best = 1.0
    for _ in range(10):
        began = time.perf_counter()
        assert resolve_commit(spec, repository, one, state=tmp_path / "state") == first
        best = min(best, time.perf_counter() - began)
    assert best < 0.1, "milliseconds on an idle machine"


def test_several_threads_may_ask_for_the_same_commits(folder, get, tmp_path):
    commits = [head(folder), *(commit(folder, f"c{number}") for number in range(3))]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(get, commits * 8))
    assert [subject.revision for subject in found] == commits * 8
    assert {path.name for path in (tmp_path / "state/subjects" / LAYOUT).iterdir()} == set(commits)
