"""How a command ends when something takes it by surprise: in words, and with a status that says what."""

from __future__ import annotations

import errno

import pytest

from repro import cli
from repro.errors import ExitCode


@pytest.fixture(autouse=True)
def own_handlers(monkeypatch):
    """Leave the handlers of the process that runs the tests alone."""
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)


def ending(monkeypatch, error: BaseException) -> int:
    """The status of a command that raises an error."""

    def run(arguments: object) -> int:
        raise error

    monkeypatch.setattr(cli, "run", run)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(str(caught.value.code))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_no_fault_of_the_kit(monkeypatch, capsys, number):
    assert ending(monkeypatch, OSError(number, "no room", "/state/kit/plugin.py")) == ExitCode.NOT_READY
    assert capsys.readouterr().err == (
        "error: the disk is full at /state/kit/plugin.py\n"
        "  why:  copies of the code, caches and images take room beside the results\n"
        "  next: make room (`repro clean` removes what can be made again), then the same command: "
        "it goes on where it stopped\n"
    )


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_folder_that_is_not_ours_is_no_fault_of_the_kit(monkeypatch, capsys, number):
    assert ending(monkeypatch, OSError(number, "Not yours", "/state/lock")) == ExitCode.NOT_READY
    assert capsys.readouterr().err == (
        "error: the system refuses /state/lock: Not yours\n"
        "  why:  it is read-only, or belongs to another user\n"
        "  next: look at `ls -ld /state/lock`, or take another folder for the results: --state DIR\n"
    )


def test_any_other_failing_call_of_the_system_is_one(monkeypatch, capsys):
    assert ending(monkeypatch, OSError(errno.EIO, "odd")) == ExitCode.BUG
    assert "a fault in the kit itself: OSError: [Errno 5] odd" in capsys.readouterr().err


def test_ctrl_c_before_anything_has_begun(monkeypatch):
    def guarded(arguments: object) -> int:
        raise KeyboardInterrupt  # as it may, while modules are imported

    monkeypatch.setattr(cli, "_guarded", guarded)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == ExitCode.INTERRUPTED
