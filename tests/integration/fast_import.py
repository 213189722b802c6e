"""Git repositories out of file contents, hundreds of commits a second: one stream for `git fast-import`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_BEGAN = 1_700_000_000
_HOUR = 3600


@dataclass
class Repository:
    """A repository in the making; nothing is written before `finish`."""

    path: Path
    _stream: list[bytes] = field(default_factory=list)
    _count: int = 0

    def commit(self, message: str, files: Mapping[str, str], parents: Sequence[int] = ()) -> int:
        """Add a commit that holds exactly these files; its number, which later commits name as a parent."""
        self._count += 1
        when = f"{_BEGAN + self._count * _HOUR} +0000"
        lines = ["commit refs/heads/main", f"mark :{self._count}", f"committer t <t@example.org> {when}"]
        self._stream += ["\n".join(lines).encode() + b"\n", _data(message)]
        if not parents and self._count > 1:
            raise ValueError("only the first commit has no parent")
        for keyword, parent in zip(["from", *["merge"] * len(parents)], parents, strict=False):
            self._stream.append(f"{keyword} :{parent}\n".encode())
        self._stream.append(b"deleteall\n")
        for name, content in files.items():
            self._stream += [f"M 100644 inline {name}\n".encode(), _data(content)]
        return self._count

    def finish(self) -> dict[int, str]:
        """Write the repository, with the last commit checked out; the ids of all commits by their numbers."""
        subprocess.run(["git", "init", "-q", "-b", "main", self.path], check=True)
        marks = self.path / ".git" / "marks"
        self._git(
            "fast-import", "--quiet", "--force", f"--export-marks={marks}", given=b"".join(self._stream)
        )
        self._git("reset", "-q", "--hard", "main")
        rows = (line.split() for line in marks.read_text().splitlines())
        return {int(mark[1:]): commit for mark, commit in rows}

    def _git(self, *arguments: str, given: bytes = b"") -> None:
        subprocess.run(["git", "-C", str(self.path), *arguments], input=given, check=True)


def _data(text: str) -> bytes:
    content = text.encode()
    return b"data %d\n%b\n" % (len(content), content)
