"""A person at a terminal, and a subject for them to look into."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time

from command_line import Kit

WRONG = """
import torch
SIZE = 6

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return torch.where(x > 0.9, 2.2, 2.0) * x * grad

def test_it():
    x = torch.rand(SIZE)
    a, b = (x.clone().requires_grad_() for _ in range(2))
    w = torch.rand(SIZE)
    Square.apply(a).backward(w)
    (b**2).backward(w)
    torch.testing.assert_close(a.grad, b.grad)
"""
"""A gradient with a factor that is wrong where an element is above 0.9."""


class Roomy(Kit):
    """A kit whose trials may load torch's compiler and distributed tensors, which `assert_close` does."""

    def plant(self, code, **more):
        super().plant(code, **more)
        file = self.home / "matrix.yaml"
        roomy = file.read_text().replace("600m", "3g").replace("trial_timeout: 3s", "trial_timeout: 60s")
        file.write_text(roomy)


def typed(command, folder, *lines):
    """Run a command on a terminal of its own, typing a line at each prompt; status, and all it showed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    shown, waiting, until = b"", list(lines), time.monotonic() + 240
    while time.monotonic() < until:
        if not select.select([ours], [], [], 1)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the other end was closed
            break
        if waiting and shown.endswith(b"(Pdb) "):
            os.write(ours, waiting.pop(0).encode() + b"\n")
    os.close(ours)
    return process.wait(timeout=30), shown.decode()


def piped(command, folder, *lines):
    """Run a command with lines on its stdin, which is no terminal; its status, and what it printed."""
    given = "\n".join([*lines, ""])
    done = subprocess.run(
        command, cwd=folder, input=given, capture_output=True, text=True, timeout=240, check=False
    )
    return done.returncode, done.stdout
