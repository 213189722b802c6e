"""The commits between two revisions, what each changed, and which tests each has."""

import itertools
import subprocess
import time
from pathlib import Path

import pytest
from subject_folders import commit, committed, fill, git

from repro.config import SubjectSpec
from repro.errors import UsageError
from repro.subject import Repository, commits_between, history, merged_commits, open_repository, touched

TEST_FILE = "tests/test_kernels.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four commits on main, `c0` to `c3`; `side` forks at c1, has s0 and s1, and is merged as c2."""
    folder = committed(fill(tmp_path / "repository"))
    commit(folder, "c1")
    git(folder, "checkout", "-qb", "side")
    commit(folder, "s0")
    commit(folder, "s1")
    git(folder, "checkout", "-q", "main")
    commit(folder, "c2")
    git(folder, "merge", "-q", "--no-ff", "-m", "merge side", "side")
    commit(folder, "c4")
    return folder


@pytest.fixture
def opened(folder: Path, tmp_path: Path) -> Repository:
    return open_repository(SubjectSpec(base=tmp_path, path=str(folder)), tmp_path / "state")


def subjects(commits: list[history.Commit]) -> list[str]:
    return [commit.subject for commit in commits]


def test_the_whole_line_of_first_parents(opened):
    line = commits_between(opened, None, None)
    assert subjects(line) == ["first", "c1", "c2", "merge side", "c4"]
    assert [commit.is_merge for commit in line] == [False, False, False, True, False]
    assert line[0].parents == ()
    assert all(later.parents[0] == earlier.id for earlier, later in itertools.pairwise(line))
    assert line[-1].id == git(opened.path, "rev-parse", "main")
    assert line[-1].short == line[-1].id[:12]
    assert line[-1].date == git(opened.path, "log", "-1", "--format=%cs")


def test_from_one_revision_to_another(opened):
    assert subjects(commits_between(opened, "main~2", "main~1")) == ["c2", "merge side"]
    assert subjects(commits_between(opened, "v1.0", "main~2")) == ["first", "c1", "c2"]
    assert subjects(commits_between(opened, "main", "main")) == ["c4"]


def test_a_beginning_beside_the_line_is_followed_by_what_came_after_it(opened):
    assert subjects(commits_between(opened, "side~1", None)) == ["s0", "c2", "merge side", "c4"]


def test_what_a_merge_brought_in(opened):
    merge = commits_between(opened, None, None)[3]
    assert [subjects(line) for line in merged_commits(opened, merge, "v1.0")] == [["c1", "s0", "s1"]]
    assert [subjects(line) for line in merged_commits(opened, merge, "side~1")] == [["s0", "s1"]]
    assert merged_commits(opened, merge, "side") == []


def test_a_branch_that_took_the_main_line_in_between_begins_where_it_forked(folder, opened):
    git(folder, "checkout", "-q", "side")
    git(folder, "merge", "-q", "--no-ff", "-m", "back", "main")
    commit(folder, "s2")
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "--no-ff", "-m", "again", "side")
    merge = commits_between(opened, None, None)[-1]
    assert [subjects(line) for line in merged_commits(opened, merge, "v1.0")] == [["s1", "back", "s2"]]


def test_an_octopus_and_a_history_of_its_own(folder, opened):
    for name in ("one", "two"):
        git(folder, "checkout", "-qb", name, "main")
        commit(folder, name)
    git(folder, "checkout", "-q", "--orphan", "island")
    commit(folder, "island")
    git(folder, "checkout", "-q", "main")
    tree = git(folder, "rev-parse", "main^{tree}")
    parents = [part for name in ("main", "one", "two", "island") for part in ("-p", name)]
    octopus = git(folder, "commit-tree", tree, "-m", "octopus", *parents)
    merge = commits_between(opened, "main", octopus)[-1]
    assert [subjects(line) for line in merged_commits(opened, merge, "main")] == [
        ["c4", "one"],
        ["c4", "two"],
        ["island"],
    ]


def test_strange_subjects_are_made_fit_to_be_shown(folder, opened):
    git(folder, "commit", "-q", "--allow-empty", "-m", "a\x1b[31m\u202eb\tc\u00a0d\n\nbody")
    assert commits_between(opened, None, None)[-1].subject == "a[31mb c d"


def test_settings_of_the_user_change_nothing(folder, opened):
    before = commits_between(opened, None, None)
    for name, value in (("log.showSignature", "true"), ("color.ui", "always"), ("log.decorate", "full")):
        git(folder, "config", name, value)
    assert commits_between(opened, None, None) == before


def test_an_unknown_revision_names_the_nearest(opened):
    for old, new in (("v1.1", None), (None, "v1.1")):
        with pytest.raises(UsageError, match=r"there is no revision `v1\.1`") as caught:
            commits_between(opened, old, new)
        assert caught.value.why == "the nearest branches and tags are `v1.0`"


def test_ends_the_wrong_way_round(opened):
    with pytest.raises(UsageError) as caught:
        commits_between(opened, "main", "v1.0")
    assert caught.value.what == "`main` comes after `v1.0`"
    assert caught.value.why == "--old names the earlier commit, --new the later one"
    assert caught.value.next_step == "swap --old and --new"


def test_ends_that_no_line_joins(folder, opened):
    git(folder, "checkout", "-qb", "other", "v1.0")
    commit(folder, "o1")
    base = git(folder, "rev-parse", "--short=12", "v1.0")
    with pytest.raises(UsageError) as caught:
        commits_between(opened, "other", "main")
    assert caught.value.what == "`other` is no ancestor of `main`"
    assert (caught.value.why, caught.value.next_step) == (f"they parted at {base}", f"--old {base}")
    git(folder, "checkout", "-q", "--orphan", "island")
    commit(folder, "island")
    with pytest.raises(UsageError) as caught:
        commits_between(opened, "island", "main")
    assert caught.value.why == "they have no commit in common"
    assert caught.value.next_step == "in a shallow clone: `git fetch --unshallow`"


def test_the_spec_says_where_a_history_ends(folder, tmp_path):
    opened = open_repository(SubjectSpec(base=tmp_path, path=str(folder), rev="side"), tmp_path / "state")
    assert subjects(commits_between(opened, None, None)) == ["first", "c1", "s0", "s1"]


def test_a_folder_inside_a_repository(folder, tmp_path):
    opened = open_repository(SubjectSpec(base=folder, path="tests"), tmp_path / "state")
    assert (opened.prefix, opened.origin, opened.url) == ("tests/", "tests", None)
    head = commits_between(opened, None, None)[-1].id
    assert history.test_names(opened, head, "test_kernels.py").names == ("test_backward",)


def test_a_mirror_ends_with_the_default_branch(folder, tmp_path):
    git(folder, "checkout", "-q", "side")
    opened = open_repository(SubjectSpec(base=tmp_path, git=folder.as_uri()), tmp_path / "state")
    assert opened.origin == folder.as_uri()
    assert subjects(commits_between(opened, "v1.0", None)) == ["first", "c1", "s0", "s1"]
    assert subjects(commits_between(opened, "v1.0", "main"))[-1] == "c4"


def test_a_folder_without_git_has_no_commits(tmp_path):
    with pytest.raises(UsageError) as caught:
        open_repository(SubjectSpec(base=tmp_path, path=str(fill(tmp_path / "plain"))), tmp_path)
    assert caught.value.what == "`plain` is no git repository, so it has no commits"
    assert caught.value.next_step == "give another one: --repo PATH_OR_URL"
    with pytest.raises(UsageError, match="there is no folder `nowhere`"):
        open_repository(SubjectSpec(base=tmp_path, path="nowhere"), tmp_path)


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://github.com/a/b.git", "https://github.com/a/b"),
        ("https://me:key@github.com/a/b", "https://github.com/a/b"),
        ("git@github.com:a/b.git", "https://github.com/a/b"),
        ("ssh://git@gitlab.com:2222/group/sub/b.git", "https://gitlab.com/group/sub/b"),
        ("https://gitlab.example.org/a/b/", "https://gitlab.example.org/a/b"),
        ("https://example.org/a/b", None),
        ("https://github.com/a", None),
        ("/srv/github.com/a/b", None),
        ("", None),
    ],
)
def test_the_web_page_of_a_repository(folder, tmp_path, remote, page):
    assert history.web_address(remote) == page
    if remote:
        git(folder, "remote", "add", "origin", remote)
    assert open_repository(SubjectSpec(base=tmp_path, path=str(folder)), tmp_path).url == page


# --- what a commit changed ---


def changed(folder: Path, opened: Repository, files: dict[str, str]) -> history.Touched:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    commit(folder)
    last = commits_between(opened, None, None)[-1]
    return touched(opened, last, test_file=TEST_FILE, python_path=["."])


KERNEL = "import triton\n\n@triton.jit\ndef kernel(x):\n    pass\n"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({TEST_FILE: "x = 1\n"}, "the test"),
        ({"tests/cases.json": "{}", "conftest.py": ""}, "the test"),
        ({"kernels/backward.py": KERNEL}, "the kernel"),
        ({"kernels/ops.py": "from triton import language as tl\n"}, "the kernel"),
        ({"csrc/op.cu": "x"}, "the kernel"),
        ({"kernels/backward.py": KERNEL, TEST_FILE: "x = 1\n"}, "the test and the kernel"),
        (
            {"kernels/backward.py": KERNEL, TEST_FILE: "x = 1\n", "kernels/other.py": "x"},
            "the test, the kernel and other code",
        ),
        ({"kernels/other.py": "jit = 'triton'\n"}, "code that holds no kernel"),
        ({"README.md": "new\n", "setup.py": "x", "docs/conf.py": "x"}, "neither the test nor any code"),
        ({}, "no file"),
    ],
)
def test_what_a_commit_changed_in_words(folder, opened, files, words):
    assert changed(folder, opened, files).words == words


def test_a_kernel_that_goes_away_was_a_kernel(folder, opened):
    changed(folder, opened, {"kernels/backward.py": KERNEL})
    gone = changed(folder, opened, {"kernels/backward.py": "def kernel(x): ...\n", "pyproject.toml": "x"})
    assert gone == history.Touched(kernel=("kernels/backward.py",), other=("pyproject.toml",))


def test_a_root_commit_changed_all_of_its_files(opened):
    first = commits_between(opened, None, None)[0]
    found = touched(opened, first, test_file=TEST_FILE, python_path=["."])
    assert (found.test, found.code) == ((TEST_FILE,), ("kernels/__init__.py",))
    assert "README.md" in found.other


def test_a_merge_is_set_against_its_first_parent(folder, opened):
    git(folder, "checkout", "-qb", "more")
    changed(folder, opened, {"kernels/backward.py": KERNEL})
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "--no-ff", "-m", "merge", "more")
    assert changed_by(opened, -1) == history.Touched(kernel=("kernels/backward.py",))


def changed_by(opened: Repository, index: int) -> history.Touched:
    merge = commits_between(opened, None, None)[index]
    return touched(opened, merge, test_file=TEST_FILE, python_path=["."])


def test_only_folders_that_are_imported_from_hold_code(folder, opened):
    (folder / "src").mkdir()
    (folder / "src/a.py").write_text("x")
    (folder / "scripts.py").write_text("x")
    commit(folder)
    last = commits_between(opened, None, None)[-1]
    found = touched(opened, last, test_file=TEST_FILE, python_path=["src"])
    assert found == history.Touched(code=("src/a.py",), other=("scripts.py",))


def test_without_a_folder_of_tests_the_file_and_its_conftest_are_the_test(folder, opened):
    for name in ("kernels/test_op.py", "kernels/conftest.py", "kernels/op.py"):
        (folder / name).write_text("x")
    commit(folder)
    last = commits_between(opened, None, None)[-1]
    found = touched(opened, last, test_file="kernels/test_op.py", python_path=["."])
    assert found.test == ("kernels/conftest.py", "kernels/test_op.py")
    assert found.code == ("kernels/op.py",)


# --- which tests a commit has ---


def source(folder: Path, opened: Repository, text: str) -> history.TestSource:
    (folder / TEST_FILE).write_text(text)
    return history.test_names(opened, commit(folder), TEST_FILE)


def test_the_tests_of_a_file_are_read_without_running_it(folder, opened):
    text = """\
raise SystemExit
def helper(): ...
if True:
    def test_a():
        def test_inner(): ...
class TestB(object):
    async def test_c(self): ...
    class TestD:
        def test_e(self): ...
"""
    found = source(folder, opened, text)
    assert found.names == ("test_a", "TestB::test_c", "TestB::TestD::test_e")
    assert found.certain
    assert found.blob == git(folder, "rev-parse", f"HEAD:{TEST_FILE}")


@pytest.mark.parametrize("text", ["from a import *\n", "class TestA(Base): ...\n", "def broken(:\n", "\0"])
def test_a_file_that_may_have_more_tests_says_so(folder, opened, text):
    assert not source(folder, opened, text).certain


def test_a_commit_without_the_file(opened):
    head = commits_between(opened, None, None)[-1].id
    assert history.test_names(opened, head, "tests/test_other.py") is None
    assert history.test_names(opened, head, "tests") is None


def test_the_same_files_have_the_same_key(folder, opened):
    first = source(folder, opened, "def test_a(): ...\n")
    (folder / "README.md").write_text("new\n")
    same = history.test_names(opened, commit(folder), TEST_FILE)
    keys = {first.key}
    assert same == first
    for name in ("conftest.py", "tests/conftest.py"):
        (folder / name).write_text("")
        keys.add(history.test_names(opened, commit(folder), TEST_FILE).key)
    (folder / "kernels/conftest.py").write_text("")
    keys.add(history.test_names(opened, commit(folder), TEST_FILE).key)
    assert len(keys) == 3, "a conftest.py beside the way to the test counts for nothing"


# --- long histories ---


def long_history(folder: Path, commits: int) -> Path:
    """A repository in which every tenth commit merges a branch of two."""
    stream, mark = ["reset refs/heads/main\n"], 0
    for number in range(commits):
        merges = number % 10 == 9
        if merges:
            for _ in range(2):
                mark += 1
                stream.append(_commit("refs/heads/side", mark, f"side {mark}", parent=":1" if _ == 0 else ""))
        mark += 1
        stream.append(
            _commit("refs/heads/main", mark, f"main {number}", merge=f":{mark - 1}" if merges else "")
        )
    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    subprocess.run(
        ["git", "-C", folder, "fast-import", "--quiet", "--force"], input="".join(stream).encode(), check=True
    )
    return folder


def _commit(ref: str, mark: int, subject: str, *, parent: str = "", merge: str = "") -> str:
    lines = [f"commit {ref}", f"mark :{mark}", f"committer t <t@example.org> {1700000000 + mark} +0000"]
    lines += [f"data {len(subject)}", subject]
    lines += [f"from {parent}"] if parent else []
    return "\n".join([*lines, *([f"merge {merge}"] if merge else [])]) + "\n\n"


def test_thousands_of_commits_are_listed_at_once(tmp_path):
    folder = long_history(tmp_path / "long", 5000)
    opened = open_repository(SubjectSpec(base=tmp_path, path=str(folder)), tmp_path / "state")
    began = time.perf_counter()
    line = commits_between(opened, None, None)
    seconds = time.perf_counter() - began
    assert len(line) == 5000
    assert sum(commit.is_merge for commit in line) == 500
    assert len(commits_between(opened, line[2500].id, None)) == 2500
    assert seconds < 10, "10,000 commits are to be listed in less than a second on an idle machine"
