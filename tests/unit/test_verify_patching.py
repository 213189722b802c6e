"""A patch is applied to a copy; what does not fit is said, and nobody's files change."""

import pytest
from subject_folders import committed, fill, git, names, resolver, write

from repro.errors import UsageError
from repro.subject.patching import changes, patched

FIX = "kernels/__init__.py"
TEST = "tests/test_kernels.py"


@pytest.fixture
def folder(tmp_path):
    return fill(tmp_path / "kernels")


@pytest.fixture
def get(tmp_path):
    return resolver(tmp_path)


def diff(tmp_path, folder, files, *options):
    """What `git diff` prints of a change, which is taken back; the patch's path."""
    committed(folder)
    write(folder, files)
    path = tmp_path / "fix.patch"
    path.write_text(git(folder, "diff", *options) + "\n")
    git(folder, "checkout", "-q", ".")
    return path


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("options", [(), ("--no-prefix",), ("--src-prefix=a/b/", "--dst-prefix=c/d/")])
def test_a_patch_is_applied_to_a_copy(tmp_path, folder, get, options):
    patch = diff(tmp_path, folder, {FIX: "def one():\n    return 1.0\n"}, *options)
    subject, before = get(folder), contents(tmp_path)
    fixed = patched(subject, patch, state=tmp_path / "state")
    assert (fixed.root / FIX).read_text() == "def one():\n    return 1.0\n"
    assert not (fixed.root / FIX).stat().st_mode & 0o222
    assert {path: content for path, content in contents(tmp_path).items() if path in before} == before
    assert changes(subject, fixed.root).code == (FIX,)
    assert not changes(subject, fixed.root).test


def test_the_revision_is_that_of_a_folder_with_the_patch_applied(tmp_path, folder, get):
    patch = diff(tmp_path, folder, {FIX: "def one():\n    return 1.0\n", "run.sh": "#!/bin/bash\n"})
    subject = get(folder)
    fixed = patched(subject, patch, state=tmp_path / "state")
    git(folder, "apply", str(patch))
    assert fixed.revision == get(folder).revision != subject.revision
    assert names(fixed) == names(subject)


def test_parts_of_a_folder(tmp_path, folder, get):
    patch = diff(tmp_path, folder, {FIX: "def one():\n    return 1.0\n", "README.md": "fixed\n"})
    subject = get(folder, files=("kernels", "tests"))
    fixed = patched(subject, patch, state=tmp_path / "state", files=("kernels", "tests"))
    assert fixed.revision.startswith("content-")
    assert fixed.notes == ("left out of the patch, as it is no part of the subject: `README.md`",)
    with pytest.raises(UsageError, match="changes no file of the subject") as refused:
        patched(get(folder, files=("tests",)), patch, state=tmp_path / "state", files=("tests",))
    assert "it changes `README.md`, `kernels/__init__.py`" in refused.value.why


def test_a_folder_inside_a_repository_and_a_state_folder_inside_it(tmp_path, get):
    top = tmp_path / "top"
    fill(top / "inner")
    patch = diff(tmp_path, top, {f"inner/{FIX}": "def one():\n    return 1.0\n"})
    subject = get(top / "inner")
    fixed = patched(subject, patch, state=top / "inner" / ".repro")
    assert changes(subject, fixed.root).code == (FIX,)


def test_an_own_test_file_stays(tmp_path, folder, get):
    own = tmp_path / "own" / "test_own.py"
    write(tmp_path, {"own/test_own.py": "def test_backward():\n    pass\n"})
    patch = diff(tmp_path, folder, {FIX: "def one():\n    return 1.0\n"})
    subject = get(folder, test_file=str(own))
    fixed = patched(subject, patch, state=tmp_path / "state")
    assert fixed.own_test_file == subject.own_test_file
    assert fixed.revision.partition("+test-")[2] == subject.revision.partition("+test-")[2] != ""


def test_a_loosened_tolerance_is_a_change_of_the_test(tmp_path, folder, get):
    patch = diff(tmp_path, folder, {TEST: "import kernels\n\n\ndef test_backward():\n    kernels.one()\n"})
    subject = get(folder)
    found = changes(subject, patched(subject, patch, state=tmp_path / "state").root)
    assert (found.test, found.code) == ((TEST,), ())


def test_a_patch_that_does_not_apply(tmp_path, folder, get):
    patch = diff(tmp_path, folder, {FIX: "def one():\n    return 1.0\n"})
    write(folder, {FIX: "def two():\n    return 2\n"})
    with pytest.raises(UsageError) as refused:
        patched(get(folder), patch, state=tmp_path / "state")
    assert refused.value.what == "fix.patch does not apply: patch failed: kernels/__init__.py:1"
    assert refused.value.why == "it was made against other files than those of the subject"
    assert "--ref REV" in refused.value.next_step


@pytest.mark.parametrize("text", ["", "just words\n"])
def test_a_patch_of_nothing(tmp_path, folder, get, text):
    (tmp_path / "fix.patch").write_text(text)
    with pytest.raises(UsageError, match=r"fix\.patch changes no file of the subject"):
        patched(get(folder), tmp_path / "fix.patch", state=tmp_path / "state")


def test_a_patch_that_is_not_there(tmp_path, folder, get):
    with pytest.raises(UsageError, match=r"fix\.patch cannot be read: No such file"):
        patched(get(folder), tmp_path / "fix.patch", state=tmp_path / "state")


def test_a_patch_that_takes_the_test_away(tmp_path, folder, get):
    patch = diff(tmp_path, folder, {TEST: "import kernels\n"})
    with pytest.raises(UsageError, match="there is no test `test_backward`"):
        patched(get(folder), patch, state=tmp_path / "state")


def test_a_patch_does_not_leave_the_copy(tmp_path, folder, get):
    outside = tmp_path / "fix.patch"
    outside.write_text("--- a/../evil.txt\n+++ b/../evil.txt\n@@ -0,0 +1 @@\n+evil\n")
    with pytest.raises(UsageError, match="does not apply: invalid path"):
        patched(get(folder), outside, state=tmp_path / "state")
    assert not list(tmp_path.rglob("evil.txt"))
