"""Running git on code that may be someone else's: no hooks, no prompts, no transports that run commands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from repro.errors import NotReadyError

_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")


class GitError(Exception):
    """git said no; the text is its reason."""


def git(repository: Path, *args: str, alternates: Sequence[Path] = ()) -> str:
    """Run git and return what it printed.

    Args:
        repository: folder that it runs in.
        args: of git.
        alternates: folders of objects that it reads beside the repository's own.

    Raises:
        GitError: when it exits with anything but 0.
        NotReadyError: when there is no git.
    """
    try:
        done = subprocess.run(
            command(repository, *args), capture_output=True, env=environment(alternates), check=False
        )
    except FileNotFoundError:
        raise no_git() from None
    if done.returncode:
        raise GitError(_decisive(done.stderr.decode(errors="replace")) or f"git {args[0]} failed")
    return done.stdout.decode("utf-8", "surrogateescape")


def _decisive(said: str) -> str:
    """The line that says why; git puts advice after it."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    fatal = [line.removeprefix("fatal: ") for line in lines if line.startswith("fatal: ")]
    return (fatal or lines or [""])[0]


def command(repository: Path, *args: str) -> Sequence[str]:
    """The command line of a git call."""
    return ["git", "-C", str(repository), *_SAFE, *args]


def environment(alternates: Sequence[Path] = ()) -> dict[str, str]:
    """This process's environment, without variables that point git elsewhere or let it ask questions.

    Args:
        alternates: folders of objects that git reads beside the repository's own.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    further = (
        {"GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(map(str, alternates))} if alternates else {}
    )
    return {
        **kept,
        **further,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }


_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE")


def no_git() -> NotReadyError:
    """The error for a machine without git."""
    return NotReadyError(
        "git was not found", why="subjects are read through git", next_step="install git, then run this again"
    )
