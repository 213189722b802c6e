"""`repro init`: a first matrix.yaml."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import click

from repro import ui
from repro.cli.options import json_option, shared_option
from repro.config import load
from repro.errors import NotReadyError, UsageError
from repro.starting import Asked, Machine, Survey, look, render, stacks_for, survey, top_of

OTHERS = 3
"""Further tests that are named."""


@click.command()
@click.option(
    "--subject", type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of the repository. [default: the one that this folder belongs to]",
)  # fmt: skip
@shared_option("--test", metavar="NAME", help="Target test. [default: the likeliest backward test]")
@shared_option("--test-file", metavar="PATH", help="File that holds it. [default: any test file]")
@shared_option(
    "--matrix", "matrix_file", type=click.Path(path_type=Path, dir_okay=False),
    help="File to write. [default: matrix.yaml at the repository's top]",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
def init(
    subject: Path | None,
    test: str | None,
    test_file: str | None,
    matrix_file: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a matrix.yaml for this repository: its test, its code, and the stacks that this machine can run.

    Reads files and runs nothing of the repository.
    """
    root = (subject or top_of(Path.cwd())).resolve()
    target = matrix_file or root / "matrix.yaml"
    if os.path.lexists(target) and not force:
        raise UsageError(
            f"{ui.display_path(target)} is there already",
            why="it may hold what you wrote by hand",
            next_step=f"`{_next(target)}` shows what it means; `repro init --force` replaces it",
        )
    found = survey(root, Asked(test=test, test_file=test_file))
    machine = look()
    text = render(found, stacks_for(machine), os.path.relpath(root, target.absolute().parent))
    _write(target, text)
    if as_json:
        click.echo(json.dumps(_as_json(target, found, machine), indent=2))
    else:
        _tell(target, found, machine)


def _write(target: Path, text: str) -> None:
    """All of the file or nothing, and only if the kit itself can read it.

    Raises:
        NotReadyError: the folder cannot be written.
    """
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "matrix.yaml"
        draft.write_text(text, encoding="utf-8")
        load(draft)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise NotReadyError(
            f"cannot write {ui.display_path(target)}: {error.strerror}",
            why="its folder is missing, or belongs to another user",
            next_step="name another place with --matrix",
        ) from None


# What was found -------------------------------------------------------------------------------------------


def _tell(target: Path, found: Survey, machine: Machine) -> None:
    rows = [("repository", f"{found.root.name}, {'in git' if found.in_git else 'not in git'}")]
    rows += [("test", f"{found.test} in {found.target.file}:{found.target.line}")]
    rows += [
        ("code", f"{', '.join(found.layout.modules) or 'none'} from {', '.join(found.layout.python_path)}")
    ]
    if found.layout.requirements:
        rows += [("requirements", ", ".join(found.layout.requirements))]
    gpu = f"{machine.gpus} x {machine.gpu}, driver {machine.driver}" if machine.gpus else "no NVIDIA GPU"
    rows += [("machine", f"{machine.engine}; {gpu}; Python {', '.join(machine.pythons)}")]
    ui.print_table(("found", "what"), rows)
    for note in _notes(found, machine):
        click.echo(f"note: {note}")
    click.echo(f"wrote {ui.display_path(target)}; next: {_next(target)}")


def _notes(found: Survey, machine: Machine) -> list[str]:
    """What a user should look at."""
    notes = []
    if not found.target.backward:
        notes.append(f"{found.target.name} does not look like a backward test; name another one with --test")
    if found.others:
        names = ", ".join(f"{each.file}::{each.name}" for each in found.others[:OTHERS])
        more = len(found.others) - OTHERS
        notes.append(f"other backward tests: {names}" + (f" and {more} more" if more > 0 else ""))
    if found.target.case is None and "[" not in found.test:
        notes.append("the test may have parameters: if so, name one case in brackets under subject.test")
    if found.layout.unknown:
        names = ", ".join(found.layout.unknown)
        notes.append(f"imported and declared nowhere: {names}; name what they need in subject.requirements")
    if not found.layout.modules:
        notes.append("the test imports none of the repository's packages; see subject.python_path")
    if machine.cpu_wheels == ():
        notes.append("no CPU build of torch can be had from here: PyTorch's index does not answer")
    if not found.ignores_state:
        notes.append("runs leave their records in .repro; add it to .gitignore")
    return notes


def _next(target: Path) -> str:
    """The command that shows what the file means, from where the user stands."""
    if target.resolve() == (Path.cwd() / "matrix.yaml").resolve():
        return "repro plan"
    if target.name == "matrix.yaml":
        return f"cd {ui.display_path(target.parent)} && repro plan"
    return f"repro plan --matrix {ui.display_path(target)}"


def _as_json(target: Path, found: Survey, machine: Machine) -> dict[str, object]:
    return {
        "file": str(target),
        "root": str(found.root),
        "git": found.in_git,
        "test_file": found.target.file,
        "test": found.test,
        "backward": found.target.backward,
        "others": [f"{each.file}::{each.name}" for each in found.others],
        "modules": list(found.layout.modules),
        "python_path": list(found.layout.python_path),
        "files": list(found.layout.parts),
        "requirements": list(found.layout.requirements),
        "engine": machine.engine,
        "gpus": machine.gpus,
        "pythons": list(machine.pythons),
        "notes": _notes(found, machine),
    }
