"""What a commit needs beside its own files: contents of submodules, and of files that Git LFS holds."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from subject_folders import commit, fill, git, names, resolver, write

from repro.config import SubjectSpec
from repro.errors import NotReadyError, UsageError
from repro.subject import Subject, open_repository, resolve_commit, submodules

ALLOWED = ("-c", "protocol.file.allow=always")
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A repository with a submodule of its own, to be a submodule."""
    inner = tmp_path / "inner"
    write(inner, {"deep.h": "1\n"})
    git(inner, "init", "-q", "-b", "main")
    commit(inner)
    made = tmp_path / "library"
    write(made, {"include/op.h": "first\n"})
    git(made, "init", "-q", "-b", "main")
    git(made, *ALLOWED, "submodule", "add", "-q", str(inner), "inner")
    commit(made)
    return made


@pytest.fixture
def folder(tmp_path: Path, library: Path) -> Path:
    """Three commits: without a submodule, with one, and with another commit of it."""
    made = fill(tmp_path / "plain")
    git(made, "init", "-q", "-b", "main")
    commit(made, "first")
    git(made, *ALLOWED, "submodule", "add", "-q", "--name", "lib/name", str(library), "third_party/lib")
    git(made, *ALLOWED, "submodule", "update", "-q", "--init", "--recursive")
    commit(made, "second")
    write(library, {"include/op.h": "second\n"})
    commit(library)
    git(made / "third_party/lib", "pull", "-q")
    commit(made, "third")
    return made


@pytest.fixture
def get(folder: Path, tmp_path: Path) -> Callable[..., Subject]:
    def get(rev: str = "main", **more: object) -> Subject:
        about = {"path": str(folder), "test_file": "tests/test_kernels.py", "test": "test_backward", **more}
        spec = SubjectSpec(base=tmp_path, **about)
        repository = open_repository(spec, tmp_path / "state")
        return resolve_commit(spec, repository, git(folder, "rev-parse", rev), state=tmp_path / "state")

    return get


def text(subject: Subject, name: str) -> str:
    return (subject.root / name).read_text()


def test_each_commit_has_its_own_contents_of_submodules(folder, get):
    second, third = get("main~1"), get("main")
    assert text(second, "third_party/lib/include/op.h") == "first\n"
    assert text(third, "third_party/lib/include/op.h") == "second\n"
    assert text(third, "third_party/lib/inner/deep.h") == "1\n", "a submodule's own submodule, too"
    assert (second.notes, third.notes) == ((), ())
    assert third.revision.startswith(f"{third.commit}+with-")
    assert get("main~2").revision == get("main~2").commit
    assert not [name for name in names(third) if name.endswith(".git")]


def test_a_working_tree_without_the_submodule_is_enough(folder, get):
    """As it is where an old commit is checked out: objects are in .git/modules all the same."""
    shutil.rmtree(folder / "third_party")
    assert text(get("main"), "third_party/lib/include/op.h") == "second\n"


def test_a_worktree_sees_the_submodules_of_its_repository(folder, get, tmp_path):
    git(folder, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "main")
    assert text(get("main", path=str(tmp_path / "tree")), "third_party/lib/include/op.h") == "second\n"


def test_parts_of_the_subject_may_be_parts_of_a_submodule(get):
    found = get(files=("kernels", "tests", "third_party/lib/include"))
    assert [name for name in names(found) if name.startswith("third")] == ["third_party/lib/include/op.h"]
    assert found.revision.startswith("content-")
    assert get(files=("kernels", "tests")).revision.count("+") == 0


def test_a_submodule_that_the_repository_does_not_have_is_said_and_may_come_later(folder, get, tmp_path):
    away = tmp_path / "away"
    (folder / ".git/modules/lib").rename(away)
    before = get("main")
    (note,) = before.notes
    assert note.startswith("submodule third_party/lib is not copied: the repository has no copy of it")
    assert "git submodule update --init" in note
    assert before.revision == before.commit
    away.rename(folder / ".git/modules/lib")
    after = get("main")
    assert after.notes == ()
    assert after.revision != before.revision, "trials of the one are no trials of the other"
    assert text(after, "third_party/lib/include/op.h") == "second\n"


def test_a_commit_that_the_copy_of_a_submodule_lacks_is_said(folder, get):
    git(folder, "update-index", "--cacheinfo", f"160000,{'1' * 40},third_party/lib")
    git(folder, "commit", "-qm", "nowhere")
    assert get("main").notes == (
        "submodule third_party/lib is not copied: the repository's copy of it lacks commit 111111111111",
    )


@pytest.mark.parametrize(
    "name",
    ["../../../../outside", "/outside", "lib/../../x", "lib//name", "lib/name/../name", "link", ".", "a:b"],
)
def test_a_name_of_a_submodule_leads_nowhere_else(folder, get, tmp_path, name):
    """As in CVE-2018-11235: a name is a path below .git/modules, or none."""
    shutil.copytree(folder / ".git/modules/lib/name", tmp_path / "outside")
    (folder / ".git/modules/link").symlink_to(tmp_path / "outside")
    lines = f'[submodule "{name}"]\n\tpath = third_party/lib\n\turl = ./x\n'
    write(folder, {".gitmodules": lines})
    git(folder, "add", ".gitmodules")
    git(folder, "commit", "-qm", "hostile")
    found = get("main")
    assert len(found.notes) == 1
    assert not (found.root / "third_party").exists()


def test_a_gitmodules_includes_no_file(folder, get, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text('[submodule "lib/name"]\n\tpath = third_party/lib\n')
    write(folder, {".gitmodules": f"[include]\n\tpath = {secret}\n"})
    git(folder, "add", ".gitmodules")
    git(folder, "commit", "-qm", "hostile")
    assert get("main").notes == (
        "submodule third_party/lib is not copied: the commit's .gitmodules does not name it",
    )


def test_a_link_of_a_submodule_that_leads_outside_is_refused(folder, library, get):
    (library / "evil").symlink_to("../../../secret")
    commit(library)
    git(folder / "third_party/lib", "pull", "-q")
    commit(folder, "hostile")
    with pytest.raises(UsageError, match="points outside it"):
        get("main")


def test_there_is_an_end_to_submodules(folder, get, monkeypatch):
    monkeypatch.setattr(submodules, "_MOST", 3)
    head = git(folder / "third_party/lib", "rev-parse", "HEAD")
    lines = [(folder / ".gitmodules").read_text()]
    for number in range(9):
        git(folder, "update-index", "--add", "--cacheinfo", f"160000,{head},x/{number}")
        lines.append(f'[submodule "lib/name"]\n\tpath = x/{number}\n')
    write(folder, {".gitmodules": "".join(lines)})
    git(folder, "add", ".gitmodules")
    git(folder, "commit", "-qm", "many")
    notes = get("main").notes
    assert len(notes) == 6
    assert "there are too many" in notes[0]
    assert notes[-1].startswith("nor are ")


# --- Git LFS ---


def stored(folder: Path, content: bytes) -> str:
    """Put a file into the store of Git LFS; its pointer."""
    sha256 = hashlib.sha256(content).hexdigest()
    path = folder / ".git/lfs/objects" / sha256[:2] / sha256[2:4] / sha256
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return POINTER.format(sha256, len(content))


def test_contents_of_git_lfs_take_the_place_of_pointers(folder, get):
    content = bytes(range(256)) * 9000
    write(folder, {"data/weights.bin": stored(folder, content), "data/notes.txt": "version 1\n"})
    commit(folder)
    found = get("main")
    assert (found.root / "data/weights.bin").read_bytes() == content
    assert text(found, "data/notes.txt") == "version 1\n"
    assert found.notes == ()
    assert "+with-" in found.revision


def test_a_pointer_without_its_content_is_said_and_may_come_later(folder, get):
    pointer = POINTER.format(hashlib.sha256(b"later").hexdigest(), 5)
    write(folder, {"data/weights.bin": pointer})
    commit(folder)
    before = get("main")
    assert before.notes == ("data/weights.bin is a pointer of Git LFS, its content is not copied",)
    assert text(before, "data/weights.bin") == pointer
    stored(folder, b"later")
    after = get("main")
    assert (text(after, "data/weights.bin"), after.notes) == ("later", ())
    assert after.revision != before.revision


@pytest.mark.parametrize(
    "pointer",
    [
        POINTER.format("../" * 21 + "x", 6),
        POINTER.format("AB" * 32, 6),
        POINTER.format("{}", 7),
        POINTER.format("{}", "9" * 16),
        POINTER.format("{}", -6),
        POINTER.format("{}", 6) + "more\n",
    ],
)
def test_a_pointer_that_is_none_stays_as_it_is(folder, get, pointer):
    stored(folder, b"secret")
    pointer = pointer.replace("{}", hashlib.sha256(b"secret").hexdigest())
    write(folder, {"data/weights.bin": pointer})
    commit(folder)
    assert text(get("main"), "data/weights.bin") == pointer


def test_a_store_that_is_damaged_or_a_link_is_not_taken(folder, get, tmp_path):
    pointer = stored(folder, b"whole!")
    write(folder, {"data/weights.bin": pointer})
    commit(folder)
    (held,) = (path for path in (folder / ".git/lfs/objects").rglob("*") if path.is_file())
    held.write_bytes(b"broken")
    with pytest.raises(NotReadyError, match="damaged"):
        get("main")
    held.unlink()
    (tmp_path / "secret").write_bytes(b"whole!")
    held.symlink_to(tmp_path / "secret")
    assert text(get("main"), "data/weights.bin") == pointer


def test_a_mirror_has_neither(folder, tmp_path):
    write(folder, {"data/weights.bin": stored(folder, b"content")})
    commit(folder)
    found = resolver(tmp_path)(None, git=f"file://{folder}")
    assert len(found.notes) == 2
    assert found.revision == found.commit
