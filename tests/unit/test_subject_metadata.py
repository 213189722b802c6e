"""What a copy has beside the subject's files: package metadata and version files."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from subject_folders import committed, fill, git, names, resolver, write

from repro.subject import Subject

ASK = """\
import importlib.metadata as metadata
distribution = metadata.distribution("my.kernels")
print(distribution.metadata["Name"], distribution.version)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path / "plain")


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., Subject]:
    return resolver(tmp_path)


def run(subject: Subject, code: str) -> str:
    """What a program prints that sees the copy and the standard library alone."""
    path = ":".join(str(subject.root / part) for part in subject.python_path)
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


PROJECT = '[project]\nname = "my-kernels"\n'
DYNAMIC = PROJECT + 'dynamic = ["version"]\n'
INIT = "kernels/__init__.py"


@pytest.mark.parametrize(
    ("files", "answer"),
    [
        ({"pyproject.toml": PROJECT + 'version = "1.2"\n'}, "my-kernels 1.2"),
        ({"pyproject.toml": '[tool.poetry]\nname = "My.Kernels"\nversion = "2.0a1"\n'}, "My.Kernels 2.0a1"),
        ({"setup.cfg": "[metadata]\nname = my_kernels\nversion = 3.0\n"}, "my_kernels 3.0"),
        ({"setup.cfg": "[metadata]\nname = my_kernels\nversion = file: V\n", "V": "3.1\n"}, "my_kernels 3.1"),
        (
            {
                "setup.cfg": "[metadata]\nname = my_kernels\nversion = attr: kernels.about.VERSION\n",
                "kernels/about.py": "VERSION = (3, 2)\n",
            },
            "my_kernels 3.2",
        ),
        (
            {"setup.py": "from setuptools import setup\nV = '4.0'\nsetup(name='my-kernels', version=V)\n"},
            "my-kernels 4.0",
        ),
        (
            {
                "setup.py": "from setuptools import setup\n"
                "setup(name='my-kernels', version=open('x').read())\n"
            },
            "my-kernels 0.0.0",
        ),
        (
            {
                "pyproject.toml": DYNAMIC
                + '[tool.setuptools.dynamic]\nversion = {attr = "kernels.__version__"}\n',
                INIT: "from .where import version as __version__\n",
                "kernels/where.py": 'version = "5.0"\n',
            },
            "my-kernels 5.0",
        ),
        (
            {
                "pyproject.toml": DYNAMIC + '[tool.setuptools.dynamic]\nversion = {file = ["VERSION"]}\n',
                "VERSION": "5.1\n",
            },
            "my-kernels 5.1",
        ),
        (
            {
                "pyproject.toml": DYNAMIC + '[tool.hatch.version]\npath = "kernels/__about__.py"\n',
                "kernels/__about__.py": "# about\n__version__ = 'v6.0'\n",
            },
            "my-kernels 6.0",
        ),
        (
            {
                "pyproject.toml": DYNAMIC + '[tool.flit.module]\nname = "kernels"\n',
                INIT: '__version__: str = "7.0"\n',
            },
            "my-kernels 7.0",
        ),
        (
            {"pyproject.toml": DYNAMIC, INIT: '__version__ = "8.0"\n', "a_tests/x.py": ""},
            "my-kernels 8.0",
        ),
        ({"pyproject.toml": DYNAMIC, INIT: "__version__ = compute()\n"}, "my-kernels 0.0.0"),
        ({"pyproject.toml": PROJECT + 'version = "no version"\n'}, "my-kernels 0.0.0"),
    ],
)
def test_a_distribution_answers_with_its_name_and_version(folder, get, files, answer):
    write(folder, files)
    assert run(get(folder), ASK) == answer


def test_nothing_is_executed_and_no_file_outside_is_read(folder, get, tmp_path):
    (tmp_path / "secret.py").write_text("__version__ = '66.6'\n")
    spoil = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    write(
        folder,
        {
            "setup.py": spoil + "from setuptools import setup\nsetup(name='my-kernels')\n",
            "pyproject.toml": DYNAMIC
            + f'[tool.hatch.version]\npath = "{tmp_path}/secret.py"\n'
            + '[tool.setuptools.dynamic]\nversion = {file = "../secret.py"}\n'
            + '[tool.pdm.version]\nsource = "file"\npath = "../secret.py"\n'
            + f'[tool.flit.module]\nname = "{tmp_path}/secret"\n'
            + '[tool.setuptools_scm]\nversion_file = "../written.py"\n',
            INIT: spoil,
        },
    )
    assert run(get(folder), ASK) == "my-kernels 0.0.0"
    assert not (tmp_path / "ran").exists()
    assert not list(tmp_path.rglob("written.py"))


@pytest.mark.parametrize("name", ["../../x", "a/b", "-x", "", "a b"])
def test_a_name_that_is_none_is_passed_over(folder, get, name):
    write(folder, {"pyproject.toml": f"[project]\nname = {name!r}\nversion = '1.0'\n"})
    subject = get(folder)
    assert subject.python_path == (".",)
    assert ".repro-metadata" not in [path.name for path in subject.root.iterdir()]


@pytest.mark.parametrize("broken", ["pyproject.toml", "setup.cfg", "setup.py"])
def test_broken_build_files_are_passed_over(folder, get, broken):
    write(folder, {"pyproject.toml": PROJECT, "setup.cfg": "", "setup.py": "", broken: "[(\n"})
    assert run(get(folder), "import kernels; print(kernels.one())") == "1"


def test_the_copy_keeps_its_name_and_its_files(folder, get):
    write(folder, {"pyproject.toml": PROJECT + 'version = "1.0"\n'})
    committed(folder)
    subject = get(folder)
    assert subject.revision == git(folder, "rev-parse", "HEAD") == get(folder, rev="main").revision
    assert subject.python_path == (".", ".repro-metadata")
    added = [name for name in names(subject) if name.startswith(".repro-metadata/")]
    assert set(names(subject)) - set(added) == set(git(folder, "ls-files").splitlines())
    assert added == [
        ".repro-metadata/my_kernels-1.0.dist-info/METADATA",
        ".repro-metadata/my_kernels-1.0.dist-info/top_level.txt",
    ]
    assert (subject.root / added[1]).read_text() == "kernels\n"


def test_a_copy_of_an_older_kit_is_not_taken_for_a_new_one(folder, get, tmp_path):
    write(folder, {"pyproject.toml": PROJECT + 'version = "1.0"\n'})
    committed(folder)
    old = tmp_path / "state/subjects" / git(folder, "rev-parse", "HEAD")
    old.mkdir(parents=True)
    assert get(folder).root != old
    assert run(get(folder), ASK) == "my-kernels 1.0"


def test_entry_points_of_plugins_are_told_but_not_those_of_pytest_and_scripts(folder, get):
    write(
        folder,
        {
            "pyproject.toml": PROJECT
            + "version = '1.0'\n[project.scripts]\nrun = 'kernels:one'\n[project.entry-points]\n"
            + "pytest11 = {x = 'kernels'}\n'my.group' = {one = 'kernels:one'}\n",
            "setup.cfg": "[options.entry_points]\nmy.other =\n    two = kernels:two\n"
            "console_scripts =\n    a = b\n",
        },
    )
    code = """\
from importlib.metadata import distribution
for point in sorted(distribution("my-kernels").entry_points):
    print(point.group, point.name, point.value)
"""
    assert run(get(folder), code).splitlines() == ["my.group one kernels:one", "my.other two kernels:two"]


# --- version files ---


@pytest.mark.parametrize(
    ("settings", "path", "content"),
    [
        ('[tool.setuptools_scm]\nwrite_to = "kernels/_v.py"\n', "kernels/_v.py", None),
        ('[tool.setuptools_scm]\nversion_file = "kernels/V.txt"\n', "kernels/V.txt", "0.0.0\n"),
        (
            '[tool.setuptools_scm]\nwrite_to = "kernels/_v.py"\nwrite_to_template = "v = \'{version}\'"\n',
            "kernels/_v.py",
            "v = '0.0.0'",
        ),
        (
            '[tool.setuptools_scm]\nwrite_to = "kernels/_v.py"\nwrite_to_template = "v = {scm_version!r}"\n',
            "kernels/_v.py",
            None,
        ),
        ('[tool.hatch.build.hooks.vcs]\nversion-file = "kernels/_v.py"\n', "kernels/_v.py", None),
        (
            '[tool.pdm.version]\nsource = "scm"\nwrite_to = "kernels/_v.py"\nwrite_template = "v = {}"\n',
            "./kernels/_v.py",
            "v = '0.0.0'",
        ),
    ],
)
def test_a_version_file_that_the_build_would_write_is_there(folder, get, settings, path, content):
    write(folder, {"pyproject.toml": DYNAMIC + settings})
    subject = get(folder)
    if content is not None:
        assert (subject.root / path).read_text() == content
    else:
        code = "from kernels._v import __version__, version_tuple; print(__version__, version_tuple)"
        assert run(subject, code) == "0.0.0 (0, 0, 0)"


def test_a_version_file_that_git_holds_is_left_alone(folder, get):
    text = '__version__ = "1.5"\n'
    settings = '[tool.setuptools_scm]\nwrite_to = "kernels/_version.py"\n'
    write(folder, {"pyproject.toml": DYNAMIC + settings, "kernels/_version.py": text})
    subject = get(folder)
    assert (subject.root / "kernels/_version.py").read_text() == text
    assert run(subject, ASK) == "my-kernels 1.5"


@pytest.mark.parametrize(
    "line",
    [
        "from ._version import version as __version__",
        "from ._version import __version__, __version_tuple__",
        "from kernels._version import __version__",
        "from . import _version; __version__ = _version.version",
        "from ._version import *",
    ],
)
def test_a_version_module_that_is_imported_and_missing_is_there(folder, get, line):
    write(folder, {"pyproject.toml": PROJECT + 'version = "9.0"\n', INIT: line + "\n"})
    assert run(get(folder), "import kernels; print(kernels.__version__)") == "9.0"


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("from ._version import get_versions", {}),
        ("from .other import __version__", {}),
        ("from .version import __version__", {"kernels/version.pyx": ""}),
        ("from ._version import __version__", {"kernels/_version/__init__.py": "__version__ = '1'"}),
        ("from other._version import __version__", {}),
        ("from .....version import __version__", {}),
    ],
)
def test_modules_that_hold_more_or_exist_are_not_made_up(folder, get, line, other):
    write(folder, {"pyproject.toml": PROJECT + 'version = "9.0"\n', INIT: line + "\n", **other})
    added = {name for name in names(get(folder)) if not name.startswith(".repro-metadata")}
    assert added == {*names_below(folder)}


def names_below(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()]
