"""A small subject as a folder and as a repository, for the tests of `repro.subject`."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from repro.config import SubjectSpec
from repro.subject import Subject, resolve

TEST = "import kernels\n\n\ndef test_backward():\n    assert kernels.one() == 1\n"


def git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", folder, *identity, *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def fill(folder: Path) -> Path:
    for name, content in {
        "kernels/__init__.py": "def one():\n    return 1\n",
        "tests/test_kernels.py": TEST,
        "README.md": "kernels\n",
        "run.sh": "#!/bin/sh\n",
        ".gitignore": "ignored.txt\n",
        ".gitattributes": "tests export-ignore\nREADME.md export-subst\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    (folder / "run.sh").chmod(0o755)
    (folder / "link.md").symlink_to("README.md")
    return folder


def write(folder: Path, files: dict[str, str]) -> None:
    """Write text files into a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def commit(folder: Path, message: str = "change") -> str:
    """Commit all of a folder; the new commit's id."""
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message, "--allow-empty")
    return git(folder, "rev-parse", "HEAD")


def committed(folder: Path) -> Path:
    """Make a folder a repository with one commit, tagged v1.0."""
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    git(folder, "tag", "v1.0")
    return folder


def resolver(base: Path) -> Callable[..., Subject]:
    """`resolve` with the kit's folder in `base`, for the subject's test unless told otherwise."""

    def get(folder: Path | None, *, test_file: str | None = None, **spec: object) -> Subject:
        path = None if folder is None else str(folder)
        given = {"path": path, "test_file": "tests/test_kernels.py", "test": "test_backward", **spec}
        return resolve(SubjectSpec(base=base, **given), state=base / "state", test_file=test_file)

    return get


def names(subject: Subject) -> list[str]:
    return sorted(
        path.relative_to(subject.root).as_posix() for path in subject.root.rglob("*") if not path.is_dir()
    )
