"""Launches that somebody watches go the way where they can be seen."""

import functools

import pytest

from msda_triton import plans
from msda_triton.plans import CompiledKernel


def test_nobody_watches_a_fresh_process():
    assert not plans._is_watched()


def test_a_wrapped_launch_is_watched(monkeypatch):
    original = CompiledKernel.__getitem__

    @functools.wraps(original)
    def wrapper(self, grid):
        return original(self, grid)

    monkeypatch.setattr(CompiledKernel, "__getitem__", wrapper)
    assert plans._is_watched()


def test_a_launch_wrapped_by_no_function_is_watched(monkeypatch):
    monkeypatch.setattr(CompiledKernel, "__getitem__", functools.partial(print))
    assert plans._is_watched()


@pytest.mark.parametrize("name", ["launch_enter_hook", "launch_exit_hook"])
def test_a_profilers_hook_watches(monkeypatch, name):
    hook = getattr(plans.HOOKED, name)
    if hasattr(hook, "calls"):
        monkeypatch.setattr(hook, "calls", [print])
    else:
        monkeypatch.setattr(plans.HOOKED, name, print)
    assert plans._is_watched()
