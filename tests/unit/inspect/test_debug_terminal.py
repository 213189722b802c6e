"""How a process gets the user's terminal: in a container, and beside it."""

import stat
import subprocess
import sys
import time

import pytest
from fake_engine import cell

from repro.engines.base import Exit, Job
from repro.engines.container import AttachedRun, arguments
from repro.engines.gpu import GpuAccess
from repro.engines.local import LocalProcess


def job(folder, **more):
    places = dict.fromkeys(("kit", "subject", "records", "cache"), folder)
    return Job(name="repro-x", request={}, **places, **more)


def test_a_terminal_loosens_no_lock(tmp_path):
    plain, attached = (
        arguments(
            cell(), job(tmp_path, terminal=on), image="i", user="1:1", gpu=GpuAccess(), labels={}
        )
        for on in (False, True)
    )  # fmt: skip
    assert (plain.pop("tty"), plain.pop("stdin_open")) == (False, False)
    assert (attached.pop("tty"), attached.pop("stdin_open")) == (True, True)
    assert attached == plain
    assert (attached["network_mode"], attached["read_only"], attached["cap_drop"]) == ("none", True, ["ALL"])


class Container:
    """A container whose state the test sets."""

    id = "abc"

    def __init__(self, status="created"):
        self.attrs = {"State": {"Status": status, "Running": status == "running", "ExitCode": 0}}
        self.removed = False

    def reload(self):
        pass

    def logs(self, tail):
        return b""

    def remove(self, force, v):
        self.removed = True


@pytest.fixture
def client(tmp_path):
    """A program in the place of Docker's client, which notes what it was asked."""
    path = tmp_path / "docker"
    path.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_dockers_client_attaches_the_container(client, tmp_path):
    container = Container("exited")
    with AttachedRun(container, job(tmp_path), str(client)) as run:
        assert run.poll() == Exit(code=0)
    assert (tmp_path / "asked").read_text() == "start --attach --interactive abc\n"
    assert container.removed


def test_a_client_that_cannot_attach_is_no_endless_wait(client, tmp_path):
    with AttachedRun(Container(), job(tmp_path), str(client)) as run:
        until = time.monotonic() + 20
        while (ended := run.poll()) is None and time.monotonic() < until:
            time.sleep(0.01)
        assert ended.infra == "Docker's client could not attach the container to the terminal"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_process_beside_shares_the_session_only_with_a_terminal(tmp_path, terminal):
    code = "import os, sys; open('seen', 'w').write(f'{os.getsid(0)}'); print('said')"
    command = [sys.executable, "-c", code]
    with LocalProcess(command, {}, job(tmp_path, terminal=terminal), tmp_path / "running") as process:
        while process.poll() is None:
            time.sleep(0.01)
    own = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getsid(0))"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert ((tmp_path / "seen").read_text() == own) is terminal
    assert ((tmp_path / "output.log").read_text() == "said\n") is not terminal
