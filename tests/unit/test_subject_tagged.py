"""Versions that come from git's tags: what a package says of itself in the copy of a commit."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version
from subject_folders import commit, committed, fill, git, resolver, write

from repro.subject import Subject
from repro.subject.declared import read_build_files
from repro.subject.patching import patched
from repro.subject.tagged import takes_tags, version_from_tags

SCM = '[build-system]\nrequires = ["setuptools", "setuptools_scm[toml]>=8"]\n'
SCM += '[project]\nname = "kernels"\ndynamic = ["version"]\n[tool.setuptools_scm]\n'
PARSING = """\
import importlib.metadata
major, minor = importlib.metadata.version("kernels").split(".")[:2]
NEW = (int(major), int(minor)) >= (1, 2)
print(importlib.metadata.version("kernels"), NEW)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = fill(tmp_path / "plain")
    write(made, {"pyproject.toml": SCM})
    git(made, "init", "-q", "-b", "main")
    commit(made, "first")
    return made


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., Subject]:
    return resolver(tmp_path)


def version(subject: Subject) -> str:
    (metadata,) = subject.root.glob(".repro-metadata/*.dist-info/METADATA")
    return metadata.read_text().partition("\nVersion: ")[2].strip()


@pytest.mark.parametrize(
    ("tag", "at_it", "after_it"),
    [
        ("v1.2.3", "1.2.3", "1.2.4.dev2"),
        ("1.2", "1.2", "1.3.dev2"),
        ("kernels-2.0", "2.0", "2.1.dev2"),
        ("v1.0rc1", "1.0rc1", "1.0rc2.dev2"),
        ("v1.0.post1", "1.0.post1", "1.0.post2.dev2"),
        ("v1.1.dev0", "1.1.dev0", "1.1.dev2"),
        ("2024.5.1+local", "2024.5.1", "2024.5.2.dev2"),
        ("nightly-of-may-5th", "", ""),
        ("v1.x", "", ""),
        ("1." + "9" * 90, "1." + "9" * 90, "1.1" + "0" * 90 + ".dev2"),
        ("1" * 120, "", ""),
        ("1.0;touch${IFS}pwned", "", ""),
    ],
)
def test_as_setuptools_scm_would_guess(folder, tag, at_it, after_it):
    git(folder, "tag", tag)
    at = git(folder, "rev-parse", "HEAD")
    commit(folder), commit(folder)
    after = git(folder, "rev-parse", "HEAD")
    assert version_from_tags(folder, at) == at_it
    found = version_from_tags(folder, after)
    assert found == (f"{after_it}+g{after[:7]}" if after_it else "")
    assert not found or Version(found) > Version(at_it)


def test_without_a_tag(folder):
    git(folder, "tag", "latest")
    head = commit(folder)
    assert version_from_tags(folder, head) == f"0.1.dev2+g{head[:7]}"


def test_each_commit_has_the_version_that_its_tags_say(folder, get, tmp_path):
    """Code that parses its own version at import takes the way that it takes where it is installed."""
    git(folder, "tag", "v1.1.9")
    write(folder, {"more.txt": "1"})
    head = commit(folder)
    assert version(get(folder, rev="v1.1.9")) == "1.1.9"
    git(folder, "tag", "v1.2.0rc1", head)
    found = get(folder, rev="main")
    done = subprocess.run(
        [sys.executable, "-S", "-c", PARSING],
        env={"PYTHONPATH": str(found.root / ".repro-metadata")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["1.2.0rc1", "True"]
    assert version(get(folder)) == "1.2.0rc1", "a folder has that of its commit"
    (tmp_path / "elsewhere").mkdir()
    mirrored = resolver(tmp_path / "elsewhere")(None, git=f"file://{folder}")
    assert version(mirrored) == "1.2.0rc1", "and so has a copy from elsewhere"
    write(folder, {"kernels/__init__.py": "def one():\n    return 2\n"})
    patch = tmp_path / "fix.patch"
    patch.write_text(git(folder, "diff") + "\n")
    assert version(patched(found, patch, state=tmp_path / "state")) == "1.2.0rc1", "and a patched copy"


def test_a_version_that_is_written_stands_where_no_tool_takes_another(folder, get):
    write(folder, {"pyproject.toml": '[project]\nname = "kernels"\nversion = "7.0"\n'})
    commit(folder)
    git(folder, "tag", "v1.0")
    assert version(get(folder, rev="main")) == "7.0"
    placeholder = '[tool.poetry]\nname = "kernels"\nversion = "0.0.0"\n'
    write(folder, {"pyproject.toml": placeholder + "[tool.poetry-dynamic-versioning]\nenable = true\n"})
    commit(folder)
    git(folder, "tag", "v1.1")
    assert version(get(folder, rev="main")) == "1.1"


def test_a_version_file_has_numbers_of_the_version_alone(folder, get):
    """Those of `1.3.dev1+g12` are 1 and 3: no commit, no count."""
    write(folder, {"pyproject.toml": SCM + 'version_file = "kernels/_version.py"\n'})
    commit(folder)
    git(folder, "tag", "1.2")
    commit(folder)
    text = (get(folder, rev="main").root / "kernels/_version.py").read_text()
    assert "version_tuple = version_info = (1, 3)\n" in text
    assert "__version__ = version = VERSION" in text
    assert "'1.3.dev1+g" in text


DYNAMIC = '[project]\nname = "a"\ndynamic = ["version"]\n'


@pytest.mark.parametrize(
    ("files", "takes"),
    [
        ({"pyproject.toml": SCM}, True),
        ({"setup.py": "from setuptools import setup\nsetup(name='a', use_scm_version=True)\n"}, True),
        ({"pyproject.toml": DYNAMIC + '[tool.hatch.version]\nsource = "vcs"\n'}, True),
        ({"pyproject.toml": DYNAMIC + '[build-system]\nrequires = ["versioningit"]\n'}, True),
        ({"pyproject.toml": DYNAMIC + '[tool.pdm.version]\nsource = "scm"\n'}, True),
        ({"setup.cfg": "[versioneer]\nVCS = git\n"}, True),
        ({"pyproject.toml": DYNAMIC + '[build-system]\nrequires = ["setuptools"]\n'}, False),
        ({"pyproject.toml": '[project]\nname = "a"\nversion = "1"\n' + SCM.partition("[project]")[0]}, False),
        ({"pyproject.toml": 'project = 7\n[build-system]\nrequires = "setuptools_scm"\n'}, False),
    ],
)
def test_which_packages_take_their_version_from_tags(tmp_path, files, takes):
    write(tmp_path, files)
    assert takes_tags(read_build_files(tmp_path)) is takes


def test_a_history_that_cannot_be_read_has_no_version(tmp_path):
    assert version_from_tags(committed(fill(tmp_path / "plain")), "0" * 40) == ""
