"""Where a copy's code is imported from, and what the copy lacks."""

from collections.abc import Callable
from pathlib import Path

import pytest
from subject_folders import commit, committed, fill, git, resolver, write

from repro.subject import Subject


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path / "plain")


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., Subject]:
    return resolver(tmp_path)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"src/pkg/__init__.py": ""}, ("src",)),
        ({"src/module.py": ""}, ("src",)),
        ({"src/kernel.cu": ""}, (".",)),
        ({"python/pkg/__init__.py": ""}, (".",)),
        ({"setup.py": "setup(package_dir={'': 'python'})", "python/pkg/__init__.py": ""}, ("python",)),
        ({"setup.py": "setup(package_dir={'': 'gone'})"}, (".",)),
        ({"setup.cfg": "[options]\npackage_dir =\n    =lib\n", "lib/pkg/__init__.py": ""}, ("lib",)),
        (
            {"pyproject.toml": '[tool.setuptools.packages.find]\nwhere = ["code"]\n', "code/a/b/c.py": ""},
            ("code",),
        ),
        (
            {
                "pyproject.toml": '[tool.hatch.build.targets.wheel]\npackages = ["code/a", "more/b"]\n',
                "code/a/__init__.py": "",
                "more/b/__init__.py": "",
            },
            ("code", "more"),
        ),
        (
            {
                "pyproject.toml": '[tool.poetry]\npackages = [{include = "a", from = "code"}]\n',
                "code/a/b.py": "",
            },
            ("code",),
        ),
        ({"pyproject.toml": '[tool.setuptools.packages.find]\nwhere = ["../x", "/"]\n'}, (".",)),
    ],
)
def test_where_code_is_imported_from(folder, get, files, found):
    write(folder, files)
    assert get(folder).python_path == found


def test_python_below_a_folder_is_found_where_the_top_has_only_scripts(folder, get):
    (folder / "kernels/__init__.py").unlink()
    write(folder, {"python/pkg/__init__.py": "", "setup.py": "", "conftest.py": "", "tests/__init__.py": ""})
    assert get(folder).python_path == ("python",)


# --- what a copy lacks ---


def test_submodules_and_pointers_are_told(folder, get):
    committed(folder)
    head = git(folder, "rev-parse", "HEAD")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + 64 * "0" + "\nsize 5\n"
    write(folder, {f"data/{number}.bin": pointer for number in range(5)})
    commit(folder)
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{head},third_party/x")
    git(folder, "commit", "-qm", "submodule")
    for rev in (None, "main", "main"):
        assert get(folder, rev=rev).notes == (
            "submodule third_party/x is not copied",
            "data/0.bin is a pointer of Git LFS, its content is not copied",
            "data/1.bin is a pointer of Git LFS, its content is not copied",
            "data/2.bin is a pointer of Git LFS, its content is not copied",
            "so are 2 more files of Git LFS",
        )
    assert get(folder, rev="main", files=("kernels", "tests")).notes == ()
    assert get(folder, rev="v1.0").notes == ()
