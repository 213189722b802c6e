"""The operator under Triton's interpreter, on the CPU."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parent.parent / "suite"
ASKED_FOR = os.environ.get("TRITON_INTERPRET") == "1"
MISSING = [name for name in ("torch", "triton", "hypothesis") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["test_*.py"] if MISSING else []


def pytest_report_header():
    return f"tests/operator: left out, {', '.join(MISSING)} missing" if MISSING else None


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    """Triton decides at its import, once and for the whole process, whether it interprets.

    So it is first imported here, and only where the process has no other use for it: the tests of other
    folders that run on a GPU need it to compile.
    """
    import torch

    if torch.cuda.is_available() and not ASKED_FOR:
        pytest.skip("a GPU is here, which other tests want Triton for: set TRITON_INTERPRET=1 to run these")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    from msda_triton import launch

    if not launch.INTERPRETED:
        pytest.skip("Triton was imported before without TRITON_INTERPRET=1")


@pytest.fixture
def suite(monkeypatch):
    """The suite's test module, loaded as a plain module."""
    monkeypatch.syspath_prepend(SUITE)
    monkeypatch.delitem(sys.modules, "cases", raising=False)
    spec = importlib.util.spec_from_file_location(
        "suite_module", SUITE / "test_multiscale_deformable_attention.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
