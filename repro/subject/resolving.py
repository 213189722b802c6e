"""From what matrix.yaml names to a read-only copy of it, with the test found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from repro.config import Signature, SubjectSpec
from repro.subject.copying import copy_of
from repro.subject.location import folder_of
from repro.subject.targets import check_test, find_test_file


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Code under test, as every trial sees it.

    Args:
        root: read-only copy of the code.
        revision: commit id where the copy is a whole commit, `COMMIT+HASH` where files differ from the
            commit, `content-HASH` for parts of a repository and for folders without git. A test file
            from outside adds `+test-HASH`.
        origin: where it came from, fit to be shown to others.
        commit: the commit that it is, or is based on, or None without git.
        python_path: folders put on PYTHONPATH, relative to `root`.
        test_file: file that holds the test, relative to `root`; its bare name where it is from outside.
        own_test_file: read-only copy of a test file from outside the subject, or None.
        test: pytest's name of the target test inside the file.
        requirements: pip requirements beside torch, triton and pytest.
        signature: what the failure looked for is recognised by.
    """

    root: Path
    revision: str
    origin: str
    commit: str | None
    python_path: tuple[str, ...]
    test_file: str
    own_test_file: Path | None
    test: str
    requirements: tuple[str, ...]
    signature: Signature


def resolve(spec: SubjectSpec, *, state: Path, test_file: str | None = None) -> Subject:
    """Copy the subject below `state` unless that copy is there already, and find its test.

    Args:
        spec: from matrix.yaml, with the command line laid over it.
        state: the kit's folder; copies go to `subjects/`, and are never changed.
        test_file: instead of `spec.test_file`: a file inside the subject, or a user's own outside it.

    Raises:
        UsageError: when the folder, revision, test file or test is not there; with the nearest names.
        NotReadyError: when a repository cannot be reached, or there is no git.
    """
    state = state.absolute()
    folder = folder_of(spec)
    if folder is not None and folder.is_dir() and spec.rev is None:
        # A wrong name is known before anything is copied.
        check_test(spec.test, find_test_file(test_file or spec.test_file, folder, folder, state).host)
    copied = copy_of(spec, state)
    found = find_test_file(test_file or spec.test_file, copied.root, folder, state)
    check_test(spec.test, found.host)
    return Subject(
        root=copied.root,
        revision=copied.revision + (f"+test-{found.digest}" if found.outside else ""),
        origin=copied.origin,
        commit=copied.commit,
        python_path=spec.python_path or _python_path(copied.root),
        test_file=found.name,
        own_test_file=found.host if found.outside else None,
        test=spec.test,
        requirements=spec.requirements,
        signature=spec.signature,
    )


def _python_path(root: Path) -> tuple[str, ...]:
    source = root / "src"
    has_code = (source.is_dir() and any(source.glob("*.py"))) or any(source.glob("*/__init__.py"))
    return ("src",) if has_code else (".",)
