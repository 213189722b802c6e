"""Code under test: what is copied, and what the copy is called."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from subject_folders import committed, fill, git, names, resolver

from repro.config import SubjectSpec
from repro.errors import NotReadyError, UsageError
from repro.subject import Subject, export, resolve, resolve_revision
from repro.subject.placing import LAYOUT
from repro.ui import one_line


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return committed(fill(tmp_path / "repository"))


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., Subject]:
    return resolver(tmp_path)


ALL = [
    ".gitattributes",
    ".gitignore",
    "README.md",
    "kernels/__init__.py",
    "link.md",
    "run.sh",
    "tests/test_kernels.py",
]


def test_a_clean_repository_is_its_commit(repository, get):
    subject = get(repository)
    assert subject.revision == subject.commit == git(repository, "rev-parse", "HEAD")
    assert subject.root.name == subject.revision
    assert names(subject) == ALL
    assert subject.origin == "repository"
    assert subject.test_file == "tests/test_kernels.py"
    assert subject.own_test_file is None
    assert subject.python_path == (".",)


def test_the_copy_is_read_only_and_keeps_modes_and_links(repository, get):
    root = get(repository).root
    modes = {path.name: path.stat().st_mode & 0o777 for path in (root, root / "kernels", root / "run.sh")}
    assert set(modes.values()) == {0o555}
    assert (root / "README.md").stat().st_mode & 0o777 == 0o444
    assert (root / "link.md").readlink() == Path("README.md")


def test_a_changed_repository_is_the_commit_and_a_hash(repository, get):
    clean = get(repository)
    (repository / "kernels/__init__.py").write_text("def one():\n    return 2\n")
    changed = get(repository)
    commit, _, content = changed.revision.partition("+")
    assert commit == clean.revision
    assert len(content) == 12
    assert "return 2" in (changed.root / "kernels/__init__.py").read_text()
    assert "return 1" in (clean.root / "kernels/__init__.py").read_text()
    git(repository, "checkout", "-q", ".")
    assert get(repository).revision == clean.revision


def test_untracked_files_count_but_junk_and_secrets_stay_out(repository, get):
    for name in (
        "fresh.py",
        "ignored.txt",
        ".env",
        ".venv/lib.py",
        "kernels/__pycache__/a.pyc",
        "id.pem",
        ".repro/x",
    ):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("x")
    (repository / "README.md").unlink()
    (repository / "link.md").unlink()
    assert names(get(repository)) == sorted([*(set(ALL) - {"README.md", "link.md"}), "fresh.py"])


def test_the_kits_own_folder_is_no_part_of_the_subject(repository, get):
    spec = SubjectSpec(base=repository, path=".", test_file="tests/test_kernels.py", test="test_backward")
    first = resolve(spec, state=repository / "out")
    assert resolve(spec, state=repository / "out").revision == first.revision == first.commit


def test_parts_of_a_folder_keep_their_name_while_the_rest_changes(repository, get):
    parts = {"files": ("kernels", "tests")}
    first = get(repository, **parts)
    (repository / "README.md").write_text("edited\n")
    assert get(repository, **parts).revision == first.revision
    assert first.revision.startswith("content-")
    assert names(first) == ["kernels/__init__.py", "tests/test_kernels.py"]
    (repository / "kernels/__init__.py").write_text("")
    assert get(repository, **parts).revision != first.revision


def test_the_same_parts_have_the_same_name_as_a_folder_and_as_a_commit(repository, get, tmp_path):
    parts = {"files": ("kernels", "tests", "run.sh", "link.md")}
    plain = fill(tmp_path / "plain")
    revisions = {
        get(repository, **parts).revision,
        get(repository, rev="v1.0", **parts).revision,
        get(plain, **parts).revision,
        get(None, git=str(repository), **parts).revision,
    }
    assert len(revisions) == 1


def test_a_folder_without_git(tmp_path, get):
    plain = fill(tmp_path / "plain")
    (plain / "venv2").mkdir()
    (plain / "venv2/pyvenv.cfg").write_text("")
    (plain / "__pycache__").mkdir()
    (plain / "__pycache__/x.py").write_text("")
    os.mkfifo(plain / "pipe")
    subject = get(plain)
    assert subject.revision.startswith("content-")
    assert subject.commit is None
    assert names(subject) == ALL


def test_a_folder_inside_a_repository(repository, get):
    subject = get(repository / "tests", test_file="test_kernels.py")
    assert names(subject) == ["test_kernels.py"]
    assert subject.revision == get(repository / "tests", rev="main", test_file="test_kernels.py").revision


def test_a_revision_of_a_local_repository(repository, get):
    first = git(repository, "rev-parse", "HEAD")
    (repository / "kernels/__init__.py").write_text("")
    git(repository, "commit", "-qam", "second")
    subject = get(repository, rev="v1.0")
    assert subject.revision == first
    assert names(subject) == ALL, "what a release leaves out is there"
    assert "return 1" in (subject.root / "kernels/__init__.py").read_text()


def test_a_repository_elsewhere_is_fetched_when_its_branch_moves(repository, get):
    url = repository.as_uri()
    first = get(None, git=url)
    git(repository, "commit", "-qm", "second", "--allow-empty")
    assert get(None, git=url).revision == git(repository, "rev-parse", "HEAD") != first.revision
    assert first.origin == url


def test_a_commit_that_is_there_needs_no_network(repository, get):
    url = repository.as_uri()
    commit = get(None, git=url).revision
    repository.rename(repository.with_name("gone"))
    assert get(None, git=url, rev=commit).revision == commit
    with pytest.raises(NotReadyError) as caught:
        get(None, git=url, rev="main")
    assert caught.value.what.startswith(f"cannot fetch {url}: '")
    assert caught.value.why == (
        "the address is wrong, the repository is private, or the network does not reach it"
    )
    assert caught.value.next_step == f"try `git ls-remote {url}`"


def test_transports_that_run_commands_are_refused(get, tmp_path):
    with pytest.raises(NotReadyError, match="transport 'ext' not allowed"):
        get(None, git=f"ext::sh -c 'touch {tmp_path}/ran'")
    assert not (tmp_path / "ran").exists()


def test_hooks_and_monitors_of_the_subject_do_not_run(repository, get, tmp_path):
    script = tmp_path / "hook"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    script.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(script))
    (repository / "README.md").write_text("edited\n")
    get(repository)
    assert not (tmp_path / "ran").exists()


def test_a_wrong_revision_names_the_nearest(repository, get):
    with pytest.raises(UsageError) as caught:
        get(repository, rev="v1.1")
    assert caught.value.what == "there is no revision `v1.1`"
    assert caught.value.why == "the nearest branches and tags are `v1.0`"
    assert caught.value.next_step == "`git fetch` in a local folder, or give the URL; `git log` lists commits"


@pytest.mark.parametrize("rev", ["-x", "", "--output=x", "a\nb"])
def test_a_revision_is_never_an_option(repository, get, rev):
    with pytest.raises(UsageError) as caught:
        get(repository, rev=rev)
    assert caught.value.what == f"`{one_line(rev)}` is no revision"
    assert caught.value.why == "a revision is a branch, a tag or a commit id, and begins with no `-` or `^`"


def test_a_revision_of_a_folder_without_git(tmp_path, get):
    with pytest.raises(UsageError) as caught:
        get(fill(tmp_path / "plain"), rev="main")
    assert caught.value.what == "`plain` is no git repository, so it has no revision `main`"
    assert caught.value.next_step == "leave the revision out"


def test_a_missing_folder(get, tmp_path):
    with pytest.raises(UsageError) as caught:
        get(tmp_path / "nowhere")
    assert caught.value.what == f"there is no folder `{tmp_path}/nowhere`"
    assert caught.value.next_step == "correct subject.path in matrix.yaml, or --subject"


@pytest.mark.parametrize("rev", [None, "main"])
def test_a_missing_part_names_the_nearest(repository, get, rev):
    with pytest.raises(UsageError) as caught:
        get(repository, files=("kernel",), rev=rev)
    assert caught.value.what == "the subject has no `kernel`"
    assert caught.value.why == "subject.files names it; the nearest are `kernels`"
    assert caught.value.next_step == "correct subject.files in matrix.yaml"


@pytest.mark.parametrize("target", ["/etc/passwd", "../secret", "kernels/../../secret", "../../x"])
@pytest.mark.parametrize("committed", [False, True])
def test_links_that_lead_outside_are_refused(repository, get, target, committed):
    (repository / "leak").symlink_to(target)
    if committed:
        git(repository, "add", "leak")
        git(repository, "commit", "-qm", "leak")
    with pytest.raises(UsageError) as caught:
        get(repository, rev="main" if committed else None)
    assert caught.value.what == f"the subject's link `leak` points outside it, to `{target}`"
    assert caught.value.why == "trials see the subject alone, so that nothing beside it can leak in"
    assert caught.value.next_step == (
        "put the file in its place, or name the folders without the link under subject.files"
    )
    assert not list((repository.parent / "state").glob("subjects/*/*"))


def test_links_that_stay_inside_are_kept(repository, get):
    (repository / "tests/readme").symlink_to("../README.md")
    subject = get(repository)
    assert (subject.root / "tests/readme").read_text() == "kernels\n"


def test_names_that_lead_outside_are_refused(repository, get, tmp_path):
    blob = git(repository, "hash-object", "-w", "README.md")
    tree = subprocess.run(
        ["git", "-C", repository, "hash-object", "-w", "-t", "tree", "--stdin", "--literally"],
        input=b"100644 ..\0" + bytes.fromhex(blob),
        capture_output=True,
        check=True,
    )
    commit = git(repository, "commit-tree", "-m", "x", tree.stdout.decode().strip())
    with pytest.raises(UsageError, match=r"the subject has a file named `\.\.`, which leads outside it"):
        export(repository, commit, tmp_path / "out")


def test_export_and_resolve_revision_serve_a_search(repository, tmp_path):
    commit = resolve_revision(repository, "v1.0")
    export(repository, commit, tmp_path / "out", files=["kernels"])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["kernels"]


def test_a_shallow_clone_says_what_it_lacks(repository, tmp_path):
    commit = git(repository, "rev-parse", "HEAD")
    blob = git(repository, "rev-parse", "HEAD:README.md")
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(NotReadyError) as caught:
        export(repository, commit, tmp_path / "out")
    assert caught.value.what == f"the repository lacks an object: {blob} missing"
    assert caught.value.next_step == "`git fetch --unshallow` there, or give the URL"


def test_a_source_folder_is_found(tmp_path, get):
    plain = fill(tmp_path / "plain")
    (plain / "src/pkg").mkdir(parents=True)
    (plain / "src/pkg/__init__.py").write_text("")
    assert get(plain).python_path == ("src",)
    assert get(plain, python_path=("kernels",)).python_path == ("kernels",)


def test_a_copy_is_made_once(repository, get):
    root = get(repository).root
    before = root.stat().st_mtime_ns
    assert get(repository).root.stat().st_mtime_ns == before
    assert [path.name for path in root.parent.iterdir()] == [root.name]


def test_a_copy_that_cannot_be_made_leaves_nothing(repository, get, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("repro.subject.tree.copy", full)
    with pytest.raises(NotReadyError) as caught:
        get(repository)
    assert caught.value.what == "the subject cannot be copied: No space left on device"
    assert list((repository.parent / "state/subjects" / LAYOUT).iterdir()) == []


def test_without_git(repository, get, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(NotReadyError, match="git was not found"):
        get(repository)


def test_credentials_are_never_shown(get):
    with pytest.raises(NotReadyError) as caught:
        get(None, git="https://me:hunter2@localhost:1/x.git")
    assert "hunter2" not in f"{caught.value.what}{caught.value.next_step}"
