"""`repro kernels`: what Triton generated in a cell, and how it differs from another's."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import click

from repro import ui
from repro.cells import Cell, newest_released, select
from repro.cli.options import Place, json_option, subject_options, workspace_options
from repro.cli.steps import given_options
from repro.cli.workspace import Workspace, only_run, open_runner
from repro.errors import NotReproducedError, UsageError
from repro.kernels import Comparison, Kernel, collect, compare
from repro.kernels.answer import lines, said, to_json, untold
from repro.kernels.artefacts import STAGES
from repro.kernels.comparing import resources
from repro.kernels.running import Compiled, Wanted, check_compiles, compile_in
from repro.run import Target
from repro.subject import Subject

_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
_ARCH = re.compile(r"(?:sm_?)?(\d{2,3})a?")
_WITH_CACHES = ("cache", "against_cache", "nvdisasm", "show", "as_json", "matrix_file", "state")
"""Options that go together with folders of Triton's cache; the others say what to compile."""

_PROFILE = ("kernel", "launches>", "us>", "registers>", "shared>", "GB/s>")


@click.command()
@click.option("--cell", metavar="GLOB", help="Cell to look at. [default: the newest released one]")
@click.option("--against", metavar="GLOB", help="Cell to compare with.")
@click.option(
    "--env",
    "env",
    metavar="NAME=VALUE",
    multiple=True,
    help="Variable of the second side alone; without --against, of the same cell. Repeatable.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the trial that compiles.")
@click.option(
    "--arch",
    metavar="sm_NN",
    help="Compile for a GPU that is not here: what the trial launches under Triton's interpreter.",
)
@click.option("--show", type=click.Choice(STAGES), help="Print this stage, or its difference.")
@click.option("--measure", is_flag=True, help="Time, registers, bandwidth: torch's profiler and ncu.")
@click.option("--cache", type=_FOLDER, help="Read this cache of Triton instead of running a trial.")
@click.option("--against-cache", type=_FOLDER, help="Compare with this cache.")
@click.option(
    "--nvdisasm",
    metavar="PROGRAM",
    help="Have this program turn machine code into text, on this machine, where the cell has none.",
)
@workspace_options
@subject_options
@json_option
def kernels(
    place: Place,
    cell: str | None,
    against: str | None,
    env: tuple[str, ...],
    seed: int,
    arch: str | None,
    show: str | None,
    measure: bool,
    cache: Path | None,
    against_cache: Path | None,
    nvdisasm: str | None,
    subject: str | None,
    test: str | None,
    test_file: str | None,
    as_json: bool,
) -> None:
    """Show what Triton generated for the test's kernels; compare two cells, stage by stage."""
    _check_caches(cache, against_cache)
    disassembler = _program(nvdisasm)
    if cache is not None:
        sides = [_cached(path, disassembler) for path in (cache, against_cache) if path is not None]
    else:
        workspace = place.open()
        tested = workspace.subject(subject, test, test_file)
        capability = _capability(arch, measure=measure)
        wanted = Wanted(seed=seed, profile=measure, arch=capability, disassembler=disassembler)
        sides = _run(workspace, tested, [cell, against], _variables(env), wanted)
    if not any(side.kernels for side in sides):
        refused = [f"{name}: {why}" for side in sides for name, why in side.refused.items()]
        raise NotReproducedError(
            "no kernel of Triton was compiled",
            why="; ".join(refused[:2]) or "the test launches none, or the folder is no cache of Triton",
            next_step="name a test that launches one: --test NAME",
        )
    compared = compare(sides[0].kernels, sides[1].kernels) if len(sides) > 1 else []
    if as_json:
        click.echo(json.dumps(to_json(sides, compared), indent=2))
    else:
        _print(sides, compared, show)


def _check_caches(cache: Path | None, against_cache: Path | None) -> None:
    """Refuse options that would have no effect beside the folders of a cache."""
    if cache is None and against_cache is not None:
        raise UsageError(
            "--against-cache has nothing to be compared with",
            why="two folders of Triton's cache are compared with each other, not with a cell",
            next_step="name the other folder, too: --cache DIR",
        )
    given = given_options(click.get_current_context(), besides=_WITH_CACHES) if cache is not None else []
    if given:
        names = ", ".join(option.opts[0] for option in given)
        raise UsageError(
            f"--cache does not go together with {names}",
            why="a cache is read as it is: no cell is chosen, no trial runs and nothing is compiled",
            next_step=f"leave {'it' if len(given) == 1 else 'them'} out; or leave --cache out, "
            "to compile the test's kernels anew",
        )


def _program(nvdisasm: str | None) -> str | None:
    """Where a program is, by its name or its path."""
    if nvdisasm is None:
        return None
    found = shutil.which(nvdisasm)
    if found is None:
        raise UsageError(
            f"--nvdisasm {nvdisasm} is no program",
            why="it is not on PATH, or may not be executed",
            next_step="name the file; Triton's wheel has one at triton/backends/nvidia/bin/nvdisasm",
        )
    return found


def _cached(path: Path, disassembler: str | None) -> Compiled:
    return Compiled(cell=str(path), kernels=collect(path, disassembler=disassembler), cache=path)


def _variables(given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [one.partition("=") for one in given]
    wrong = [name for name, equals, _ in pairs if not name or not equals]
    if wrong:
        raise UsageError(f"--env {wrong[0]} is no NAME=VALUE", next_step="--env TRITON_DEFAULT_FP_FUSION=0")
    return tuple((name, value) for name, _, value in pairs)


def _capability(arch: str | None, *, measure: bool) -> int | None:
    if arch is None:
        return None
    if measure:
        raise UsageError(
            "--measure and --arch do not go together",
            why="a GPU that is not here cannot be measured",
            next_step="leave one of them out",
        )
    found = _ARCH.fullmatch(arch)
    if found is None:
        raise UsageError(
            f"--arch {arch} is no GPU's architecture",
            why="it is written as ptxas has it, by compute capability",
            next_step="--arch sm_90 for an H100, sm_80 for an A100",
        )
    return int(found[1])


def _run(
    workspace: Workspace,
    subject: Subject,
    globs: list[str | None],
    env: tuple[tuple[str, str], ...],
    wanted: Wanted,
) -> list[Compiled]:
    first = _cell(workspace, globs[0])
    second = _cell(workspace, globs[1]) if globs[1] else first if env else None
    asked = [(first, replace(wanted, env=())), *([(second, replace(wanted, env=env))] if second else [])]
    for cell, one in asked:
        check_compiles(Target(cell=cell, subject=subject), one)
    if wanted.arch is None:
        workspace.check_gpu()
    gpu = workspace.first_gpu()
    sides = []
    with only_run(workspace.state), open_runner(workspace, ui.say) as runner:
        for cell, one in asked:
            target = Target(cell=cell, subject=subject)
            ui.say(f"{cell.id}: one trial with an empty cache")
            sides.append(compile_in(runner, target, runner.prepare(target), replace(one, gpu=gpu)))
    return sides


def _cell(workspace: Workspace, glob: str | None) -> Cell:
    return newest_released(select(workspace.cells, [glob] if glob else []))


def _print(sides: list[Compiled], compared: list[Comparison], show: str | None) -> None:
    for side in sides if len(sides) == 1 else ():
        _print_side(side, show)
    for name, side in zip("AB", sides if compared else (), strict=False):
        click.echo(f"{name}: {side.cell}")
    for one in compared:
        click.echo("\n".join(lines(one)))
        stage = show or ("ptx" if one.first_difference else None)
        if show and stage:
            click.echo("\n".join(one.difference(stage)) or f"  {stage}: no difference")
    for side in sides:
        for name, why in side.refused.items():
            click.echo(f"{name}: not compiled in {side.cell}: {why}")
        if told := untold(side):
            click.echo(told)
    if compared:
        click.echo(said(compared))
    for side in sides:
        _print_profile(side)


def _print_side(side: Compiled, show: str | None) -> None:
    rows = [
        (kernel.name, *map(_cell_text, _facts(kernel)), ", ".join(kernel.stages)) for kernel in side.kernels
    ]
    columns = ("kernel", "warps>", "stages>", "shared>", "registers>", "spills>", "there is")
    ui.print_table(columns, rows, title=side.cell)
    for kernel in side.kernels if show else ():
        click.echo(f"--- {kernel.name} ({kernel.folder.name})")
        click.echo(kernel.stages.get(str(show), f"no {show}"))


def _facts(kernel: Kernel) -> list[object]:
    takes = resources(kernel)
    return [takes.get(name) for name in ("num_warps", "num_stages", "shared", "registers", "spills")]


def _cell_text(value: object) -> str:
    return "-" if value is None else str(value)


def _print_profile(side: Compiled) -> None:
    rows = [
        (
            str(row["name"])[:60],
            str(row["launches"]),
            f"{row['microseconds']:.1f}",
            _cell_text(row.get("registers")),
            _cell_text(row.get("shared")),
            "-" if row.get("gigabytes_per_second") is None else f"{row['gigabytes_per_second']:.0f}",
        )
        for row in side.profile
    ]
    if rows:
        ui.print_table(_PROFILE, rows, title=f"{side.cell}: torch's profiler, one trial")
    for row in side.nsight:
        click.echo(
            f"{row['name']}: " + ", ".join(f"{name} {value}" for name, value in row["metrics"].items())
        )
    for reason in side.why_no_profile:
        click.echo(f"no profile: {reason}")
