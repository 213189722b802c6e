"""From what matrix.yaml names to a read-only copy of it, with the test found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from repro.config import Signature, SubjectSpec
from repro.subject.commits import Repository
from repro.subject.copying import Copy, Picked, commit_copy, copy_of
from repro.subject.layout import find_python_path, fitting_python_path
from repro.subject.location import folder_of, is_folder
from repro.subject.metadata import with_metadata
from repro.subject.naming import check_tests_from, name_in_commits
from repro.subject.targets import TestFile, check_test, find_test_file, from_outside


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
        python_path: folders put on PYTHONPATH, relative to `root`; the last one holds package metadata where
            the subject is a package.
        test_file: file that holds the test, relative to `root`; its bare name where it is from outside.
        own_test_file: read-only copy of a test file from outside the subject, or None.
        test: pytest's name of the target test inside the file.
        requirements: pip requirements beside torch, triton and pytest.
        signature: what the failure looked for is recognised by.
        notes: sentences about what the copy lacks, such as the contents of submodules.
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
    notes: tuple[str, ...] = ()


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
    if folder is not None and is_folder(folder) and spec.rev is None:
        # A wrong name is known before anything is copied.
        check_test(spec.test, find_test_file(test_file or spec.test_file, folder, folder, state).host)
    copied = copy_of(spec, state)
    found = find_test_file(test_file or spec.test_file, copied.root, folder, state)
    check_test(spec.test, found.host)
    return _subject(spec, copied, found, spec.python_path or find_python_path(copied.root))


def resolve_commit(
    spec: SubjectSpec,
    repository: Repository,
    commit: str,
    *,
    state: Path,
    test_file: str | None = None,
    tests_from: str | None = None,
) -> Subject:
    """Copy one commit below `state` unless that copy is there already; nothing is fetched.

    A commit may lack the test, its file, folders of `spec.python_path`, or parts of `spec.files`: what the
    trials come to says so. Safe to call from several threads.

    Args:
        spec: where the test is and how its failure is recognised.
        repository: that holds the commits.
        commit: full id.
        state: the kit's folder.
        test_file: instead of `spec.test_file`: a file inside the subject, or a user's own outside it.
        tests_from: full id of a commit whose tests are put in place of the commit's own: all of the test's
            folder of tests, or, without one, the test file and the conftest.py files beside and above it.

    Raises:
        UsageError: when the commit has no part of the subject, a link leads outside, or `tests_from` has no
            such test file.
        NotReadyError: when the disk is full, or the repository lacks an object.
    """
    state = state.absolute()
    name, own = name_in_commits(test_file or spec.test_file, spec, repository)
    if tests_from is not None:
        check_tests_from(repository, tests_from, name, own)
    picked = Picked(
        repository=repository.path,
        commit=commit,
        prefix=repository.prefix,
        files=spec.files,
        test_file=name,
        tests_from=tests_from,
    )
    copied = commit_copy(picked, state, repository.origin)
    if own is None:
        found = TestFile(name=name, host=copied.root / name, outside=False, digest="")
    else:
        found = from_outside(own, state)
    return _subject(spec, copied, found, fitting_python_path(copied.root, spec.python_path))


def _subject(spec: SubjectSpec, copied: Copy, found: TestFile, python_path: tuple[str, ...]) -> Subject:
    return Subject(
        root=copied.root,
        revision=copied.revision + (f"+test-{found.digest}" if found.outside else ""),
        origin=copied.origin,
        commit=copied.commit,
        python_path=with_metadata(copied.root, python_path),
        test_file=found.name,
        own_test_file=found.host if found.outside else None,
        test=spec.test,
        requirements=spec.requirements,
        signature=spec.signature,
        notes=copied.notes,
    )
