"""Which client builds, with what arguments, and what a failed build says."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from repro.cells import Cell
from repro.engines import builders
from repro.engines.bases import resources
from repro.engines.builders import Build, Builder, BuilderKind, choose, without_mounts
from repro.engines.messages import build_failed, decisive_line
from repro.engines.process import Done, run_logged
from repro.errors import NotReadyError

CELL = Cell(python="3.11", torch="2.13.0", triton="3.7.1", cuda="cpu", pinned_triton="3.7.1")


def fake_docker(folder: Path, version: str, *, buildx: bool, code: int = 0) -> Path:
    """A docker command that answers version questions and notes the rest."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "docker"
    program.write_text(
        f"""#!{sys.executable}
import json, os, sys
words = sys.argv[1:]
if words == ["--version"]:
    print("Docker version {version}, build 0")
elif words == ["buildx", "version"]:
    sys.exit({0 if buildx else 1}) if not {buildx} else print("buildx v0.20")
elif words == ["context", "show"]:
    print("mine")
else:
    with open({str(folder / "asked")!r}, "a") as file:
        file.write(json.dumps([words, os.environ.get("DOCKER_BUILDKIT")]) + "\\n")
    print(" ---> 0123456789ab")
    sys.exit({code})
"""
    )
    program.chmod(0o755)
    return program


def asked(folder: Path) -> list[list[object]]:
    return [json.loads(line) for line in (folder / "asked").read_text().splitlines()]


@pytest.mark.parametrize(
    ("clients", "expected"),
    [
        ([("28.2.2", False)], ("classic", 0)),
        ([("28.2.2", False), ("20.10.24+dfsg1", False)], ("buildkit", 1)),
        ([("20.10.24", False), ("28.2.2", True)], ("buildx", 1)),
        ([("17.12.0-ce", False)], ("classic", 0)),
        ([], None),
    ],
)
def test_the_best_client_on_path_builds(tmp_path, clients, expected):
    folders = [tmp_path / str(number) for number in range(len(clients))]
    for folder, (version, buildx) in zip(folders, clients, strict=True):
        fake_docker(folder, version, buildx=buildx)
    found = choose(os.pathsep.join(map(str, folders)))
    assert (found and (found.kind.value, folders.index(Path(found.program).parent))) == expected


def test_no_builder_is_an_error_with_a_fix(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotReadyError) as caught:
        builders.chosen()
    assert caught.value.what == "no docker client on PATH has a builder"
    assert caught.value.next_step == "install the docker client (docker-ce-cli or docker.io)"
    fake_docker(tmp_path, "28.2.2", buildx=False)
    monkeypatch.setenv(builders.ENVIRONMENT_NAME, "buildx")
    with pytest.raises(NotReadyError, match="has a buildx builder"):
        builders.chosen()


@pytest.fixture
def order(tmp_path):
    context = tmp_path / "context"
    context.mkdir()
    for name in ("Dockerfile", "step.py"):
        (context / name).write_text((resources() / name).read_text())
    return Build(
        context=context,
        step="torch",
        parent="repro-base:1",
        tag="repro-torch:1",
        labels={"a": "b"},
        network="none",
    )


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in (*builders.PROXIES, "DOCKER_HOST"):
        monkeypatch.delenv(name, raising=False)


def build(tmp_path, order, kind, version="20.10.24", **more):
    program = str(fake_docker(tmp_path / "bin", version, buildx=kind == "buildx", **more))
    builder = Builder(program=program, kind=BuilderKind(kind), version=version)
    return builders.build(builder, order, log=tmp_path / "log", timeout=60)


COMMON = [
    *("--target", "torch", "--tag", "repro-torch:1", "--network", "none"),
    *("--build-arg", "PARENT=repro-base:1", "--label", "a=b"),
]


def test_buildkit_arguments(tmp_path, order):
    assert build(tmp_path, order, "buildkit").ok
    [[words, buildkit]] = asked(tmp_path / "bin")
    assert words == ["build", "--progress", "plain", *COMMON, str(order.context)]
    assert buildkit == "1"


def test_buildx_takes_the_builder_that_sees_the_engines_images(tmp_path, order):
    assert build(tmp_path, order, "buildx").ok
    [[words, _]] = asked(tmp_path / "bin")
    assert words[:5] == ["buildx", "build", "--load", "--builder", "mine"]


def test_classic_arguments(tmp_path, order):
    assert build(tmp_path, order, "classic").ok
    [[words, buildkit]] = asked(tmp_path / "bin")
    assert words[:5] == ["build", "--force-rm", "--no-cache", "--file", f"{order.context}/Dockerfile.classic"]
    assert words[6].startswith("REPRO_CONTEXT=http://127.0.0.1:")
    assert buildkit == "0"


def test_a_failed_classic_build_removes_its_steps(tmp_path, order):
    assert not build(tmp_path, order, "classic", code=1).ok
    assert asked(tmp_path / "bin")[-1][0] == ["image", "rm", "0123456789ab"]


def test_proxies_reach_the_build_by_name_only(tmp_path, order, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@proxy:1")
    build(tmp_path, order, "buildkit")
    words = asked(tmp_path / "bin")[0][0]
    assert words[words.index("HTTPS_PROXY") - 1] == "--build-arg"
    assert "secret" not in " ".join(words)


@pytest.mark.parametrize("step", ["base", "torch", "cell"])
def test_the_dockerfile_for_a_builder_without_mounts(step):
    text = without_mounts((resources() / "Dockerfile").read_text(), step)
    assert text.count("FROM ") == 1
    assert f"AS {step}" in text
    assert "--mount" not in text
    [run] = [line for line in text.splitlines() if line.startswith("RUN ")]
    program = json.loads(run.removeprefix("RUN "))
    compile(program[2], "step", "exec")
    assert ("'base'" in program[2]) == (step == "base")


def test_the_dockerfile_keeps_to_what_offline_builders_know():
    text = (resources() / "Dockerfile").read_text()
    assert "# syntax" not in text.splitlines()[0]
    assert "<<" not in text


def test_a_command_at_its_limit_is_killed_with_its_children(tmp_path):
    command = ["sh", "-c", "echo begun; sleep 60 & sleep 60"]
    done = run_logged(command, log=tmp_path / "log", timeout=0.5)
    assert done.code is None
    assert "begun" in (tmp_path / "log").read_text()


BUILDKIT = """#6 0.227 $ /kit/uv pip install pluggy==999.0
#6 0.400   × No solution found when resolving dependencies:
#6 0.400   ╰─▶ Because there is no version of pluggy==999.0 and you require
#6 ERROR: executor failed running [python3 /kit/step.py install]: exit code: 1
------
 > [cell 2/2] RUN python3 /kit/step.py install:
failed to solve: executor failed running
"""


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (BUILDKIT, "╰─▶ Because there is no version of pluggy==999.0 and you require"),
        ("E: Unable to locate package gcc\nThe command returned 100", "E: Unable to locate package gcc"),
        ("", "it wrote nothing"),
        ("some\nlast words\n\n", "last words"),
    ],
)
def test_the_decisive_line(output, line):
    assert decisive_line(output) == line


@pytest.mark.parametrize(
    ("done", "what", "why", "fix"),
    [
        (Done(code=None, output=""), "took longer than its limit", "a download that hangs", "build_timeout"),
        (Done(code=1, output="write: no space left on device"), "failed: write", "disk is full", "prune"),
        (Done(code=1, output="error: dns error"), "failed: error: dns error", "could not reach", "doctor"),
        (Done(code=1, output="error: odd"), "failed: error: odd", "", "/logs/x"),
    ],
)
def test_what_a_failed_build_says(done, what, why, fix):
    error = build_failed(CELL, "the cell image", done, Path("/logs/x"))
    assert error.what.startswith("torch2.13.0-triton3.7.1-cpu-py311: building the cell image")
    assert what in error.what
    assert why in error.why
    assert fix in error.next_step
    assert "/logs/x" in error.next_step
