"""What all tests share: when Docker and GPU tests are skipped, and that this is said."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@cache
def docker_answers() -> bool:
    """Whether a Docker engine answers; REPRO_REQUIRE_DOCKER=1 makes it an error that none does."""
    client = shutil.which("docker")
    answers = client is not None and (
        subprocess.run([client, "info"], capture_output=True, check=False, timeout=30).returncode == 0
    )
    if not answers and os.environ.get("REPRO_REQUIRE_DOCKER") == "1":
        pytest.exit("REPRO_REQUIRE_DOCKER=1, and no Docker engine answers", returncode=3)
    return answers


def gpu_present() -> bool:
    """Whether an NVIDIA GPU's device node is here."""
    return Path("/dev/nvidia0").exists()


def pytest_configure() -> None:
    """Take SIGINT even where the tests run in the background, which makes programs ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("docker") and not docker_answers():
        pytest.skip("no Docker engine answers; start one to run the container tests")
    if item.get_closest_marker("gpu") and not gpu_present():
        pytest.skip("no NVIDIA GPU")
