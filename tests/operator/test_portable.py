"""One source for every Triton: oldest, middle and newest, each in its own environment."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def run(*command, **environment):
    done = subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.0.0", "3.4.0", "3.9.0"])
def test_every_kernel_in_every_triton(version, tmp_path):
    """Interpreted, they compute the formula; compiled, atomics are relaxed and, on sm_90, of four floats."""
    pytest.importorskip("uv")
    python = tmp_path / "bin" / "python"
    run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, tmp_path)
    install = ("install", "--torch", "2.13.0", "--cuda", "cpu", "--triton", version, "--python", python)
    run(sys.executable, "-m", "repro.engines.packages", *install)
    cache = {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    compiled = {}
    with ThreadPoolExecutor(3) as pool:
        told = pool.submit(run, python, HERE / "portable.py", TRITON_INTERPRET="1", **cache)
        for arch, kind in ((80, "bf16"), (90, "fp32")):
            command = (python, HERE / "offline.py", arch, kind, 32)
            compiled[arch] = pool.submit(run, *command, TRITON_INTERPRET="0", **cache)
    assert told.result().startswith(f"Triton {version}: every kernel agrees")
    for arch, done in compiled.items():
        report = json.loads(done.result())
        assert report["triton"] == version
        for kernel in ("backward", "exact"):
            (atomic,) = (name for name in report[kernel] if name.startswith(("atom", "red")))
            assert ".relaxed." in atomic
            if arch == 90 and version != "3.0.0":
                assert atomic.endswith(".v4.f32")
