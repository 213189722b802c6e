"""Make a git repository of the operator with 64 commits, one of which changes its arithmetic.

    python docs/evidence/h100/history.py FOLDER      # prints the commit that changes it

Up to that commit the operator rounds coordinates as grid_sample does, and the reported test passes; from it on they
take the shorter way, and the test fails in one run of twelve. The others add notes to the code, tests or text.
"""

import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LENGTH = 64
FOLDERS = ("msda_triton", "tests/suite")
NOTED = ("msda_triton/native.py", "tests/suite/cases.py", "msda_triton/launch.py")
DEFAULT = 'arithmetic: str = "{}"'


def git(folder: Path, *arguments: str) -> str:
    """What git prints."""
    told = ["git", "-C", str(folder), "-c", "user.name=history", "-c", "user.email=history@localhost"]
    return subprocess.run([*told, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def edit(path: Path, old: str, new: str) -> None:
    """Replace the only place that says `old`."""
    text = path.read_text()
    if text.count(old) != 1:
        sys.exit(f"{path}: expected {old!r} once")
    path.write_text(text.replace(old, new))


def make(folder: Path, culprit: int) -> str:
    """Write the repository, oldest commit first, and return the id of the commit that changes the arithmetic."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for name in FOLDERS:
        for path in sorted((ROOT / name).rglob("*.py")):
            copy = folder / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text())
    functional = folder / "msda_triton/functional.py"
    edit(functional, DEFAULT.format("direct"), DEFAULT.format("aten"))
    named = ""
    for index in range(LENGTH):
        if index == culprit:
            edit(functional, DEFAULT.format("aten"), DEFAULT.format("direct"))
        else:
            with (folder / NOTED[index % len(NOTED)]).open("a") as file:
                file.write(f"\n# Note {index}.\n")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", f"Change {index}")
        named = git(folder, "rev-parse", "HEAD") if index == culprit else named
    return named


if __name__ == "__main__":
    print(make(Path(sys.argv[1]), culprit=random.Random(2026).randrange(8, LENGTH - 8)))
