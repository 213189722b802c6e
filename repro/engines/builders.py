"""Which docker client builds images, and how: buildx, BuildKit inside the client, or the classic builder."""

from __future__ import annotations

import io
import os
import re
import secrets
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from repro.engines.process import Done, run_logged
from repro.errors import NotReadyError

ENVIRONMENT_NAME = "REPRO_BUILDER"
"""Set it to a `BuilderKind` to have that one, for instance where buildx is broken."""

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")

_FETCH = (
    "import io,os,runpy,shutil,sys,tarfile,urllib.request as u;"
    "o=u.build_opener(u.ProxyHandler({}));"
    "t=tarfile.open(fileobj=io.BytesIO(o.open(os.environ['REPRO_CONTEXT']).read()));"
    "t.extractall('/tmp/repro-kit');"
    "sys.argv=['step.py',%r];"
    "code=0\\n"
    "try: runpy.run_path('/tmp/repro-kit/step.py',run_name='__main__')\\n"
    "except SystemExit as e: code=e.code\\n"
    "shutil.rmtree('/tmp/repro-kit');sys.exit(code)"
)
"""What a builder without mounts runs: take the context from the kit, do the step, leave nothing of it."""


_STEP = re.compile(r'RUN --mount.* \["python3", "/kit/step.py", "(\w+)"\]')


class BuilderKind(StrEnum):
    """A way to build images, best first."""

    BUILDX = "buildx"
    BUILDKIT = "buildkit"
    CLASSIC = "classic"


@dataclass(frozen=True, kw_only=True)
class Builder:
    """A docker client and the way it builds."""

    program: str
    kind: BuilderKind
    version: str = ""


@dataclass(frozen=True, kw_only=True)
class Build:
    """One image to build.

    Args:
        context: folder with the Dockerfile and all that the step needs.
        step: stage of the Dockerfile.
        parent: image that the step begins with.
        tag: name of the result.
        labels: labels of the result.
        network: network of the build's processes.
    """

    context: Path
    step: str
    parent: str
    tag: str
    labels: Mapping[str, str]
    network: str


@lru_cache(maxsize=4)
def choose(path: str, wanted: str = "") -> Builder | None:
    """The best builder among the docker clients on `path`, or None.

    Args:
        path: folders to look in, as in PATH.
        wanted: kind that must be used, or "" for the best.
    """
    found = [builder for program in _programs(path) for builder in _kinds(program)]
    order = list(BuilderKind)
    fitting = [builder for builder in found if not wanted or builder.kind == wanted]
    return min(fitting, key=lambda builder: order.index(builder.kind), default=None)


def chosen() -> Builder:
    """The builder to use here.

    Raises:
        NotReadyError: no docker client can build.
    """
    wanted = os.environ.get(ENVIRONMENT_NAME, "")
    builder = choose(os.environ.get("PATH", os.defpath), wanted)
    if builder is None:
        kind = f"{wanted} " if wanted else ""
        raise NotReadyError(
            f"no docker client on PATH has a {kind}builder",
            why="images are built with the docker command, and the engine alone does not bring it",
            next_step=f"unset {ENVIRONMENT_NAME}"
            if wanted
            else "install the docker client (docker-ce-cli or docker.io)",
        )
    return builder


def _programs(path: str) -> Iterator[str]:
    seen: set[Path] = set()
    for folder in path.split(os.pathsep):
        program = Path(folder or ".", "docker")
        if program.is_file() and os.access(program, os.X_OK) and program.resolve() not in seen:
            seen.add(program.resolve())
            yield str(program)


def _kinds(program: str) -> Iterator[Builder]:
    version = _output([program, "--version"])
    found = re.search(r"(\d+)\.(\d+)[.\d]*", version)
    if found is None:
        return
    major, text = int(found.group(1)), found.group(0)
    if _output([program, "buildx", "version"]):
        yield Builder(program=program, kind=BuilderKind.BUILDX, version=text)
    if 18 < major < 23:  # later clients leave BuildKit to the buildx plugin
        yield Builder(program=program, kind=BuilderKind.BUILDKIT, version=text)
    yield Builder(program=program, kind=BuilderKind.CLASSIC, version=text)


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def build(builder: Builder, order: Build, *, log: Path, timeout: float) -> Done:
    """Run one build; its whole output goes to `log`, and at the limit it is killed."""
    if builder.kind is BuilderKind.CLASSIC:
        return _classic(builder, order, log, timeout)
    command = [builder.program]
    if builder.kind is BuilderKind.BUILDX:
        # The builder of the docker driver has the context's name; others do not see the engine's own images.
        context = "" if os.environ.get("DOCKER_HOST") else _output([builder.program, "context", "show"])
        command += ["buildx", "build", "--load", "--builder", context.strip() or "default"]
    else:
        command += ["build"]
    command += ["--progress", "plain", *_common(order), str(order.context)]
    return run_logged(command, log=log, timeout=timeout, env={**os.environ, "DOCKER_BUILDKIT": "1"})


def _common(order: Build) -> list[str]:
    flags = ["--target", order.step, "--tag", order.tag, "--network", order.network]
    flags += ["--build-arg", f"PARENT={order.parent}"]
    for name, value in order.labels.items():
        flags += ["--label", f"{name}={value}"]
    for name in PROXIES:
        if os.environ.get(name):
            flags += ["--build-arg", name]
    return flags


def _classic(builder: Builder, order: Build, log: Path, timeout: float) -> Done:
    """Build without mounts: the step fetches its context from a server of the kit's own on this machine."""
    begin = time.monotonic()
    text = (order.context / "Dockerfile").read_text(encoding="utf-8")
    with _serving(order.context) as address:
        dockerfile = order.context / "Dockerfile.classic"
        dockerfile.write_text(without_mounts(text, order.step), encoding="utf-8")
        ignored = order.context / ".dockerignore"
        ignored.write_text("*\n!Dockerfile.classic\n", encoding="utf-8")
        command = [
            builder.program, "build", "--force-rm", "--no-cache", "--file", str(dockerfile),
            "--build-arg", f"REPRO_CONTEXT={address}", *_common(order), str(order.context),
        ]  # fmt: skip
        done = run_logged(command, log=log, timeout=timeout, env={**os.environ, "DOCKER_BUILDKIT": "0"})
    left = max(1.0, timeout - (time.monotonic() - begin))
    if not done.ok:
        _drop_layers(builder, done.output, order.parent, log, left)
    return done


def without_mounts(dockerfile: str, step: str) -> str:
    """The one stage that is wanted, for a builder that knows neither mounts nor skipping of stages."""
    stage, taken = "", ["ARG PARENT"]
    for line in dockerfile.splitlines():
        if found := re.match(r"FROM .* AS (\w+)", line):
            stage = found.group(1)
            if stage == step:
                taken += [line, "ARG REPRO_CONTEXT"]
        elif stage == step and (run := _STEP.match(line)):
            code = (_FETCH % run.group(1)).replace('"', '\\"')
            taken.append(f'RUN ["python3", "-c", "{code}"]')
        elif stage == step and line.strip():
            taken.append(line)
    return "\n".join(taken) + "\n"


def _drop_layers(builder: Builder, output: str, parent: str, log: Path, timeout: float) -> None:
    """Remove what a failed classic build leaves: its finished steps, as images without a name."""
    keep = _output([builder.program, "image", "inspect", "--format", "{{.Id}}", parent]).strip()
    for found in reversed(re.findall(r"^ ---> ([0-9a-f]{12})$", output, re.MULTILINE)):
        if not keep.removeprefix("sha256:").startswith(found):
            run_logged([builder.program, "image", "rm", found], log=log, timeout=timeout)


@contextmanager
def _serving(context: Path) -> Iterator[str]:
    """Serve a folder as one tar on the loopback interface, under an address that cannot be guessed."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(context, arcname=".")
    body, address = packed.getvalue(), f"/{secrets.token_hex(16)}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == address
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(body) if found else 0))
            self.end_headers()
            if found:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{address}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
