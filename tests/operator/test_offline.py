"""What the kernels compile to, without a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize(("arch", "kind", "channels"), [(80, "bf16", 32), (90, "fp32", 32)])
def test_ptx(arch, kind, channels, tmp_path):
    """Atomics are relaxed, so that none brings a fence; on sm_90 four floats go in one; loads are vectors."""
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = str(HERE.parent.parent)
    done = subprocess.run(
        [sys.executable, HERE / "offline.py", str(arch), kind, str(channels)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for kernel in ("backward", "exact", "coarse"):
        atomics = [name for name in found[kernel] if name.startswith(("atom", "red"))]
        assert len(atomics) == 1, kernel
        assert ".relaxed." in atomics[0]
        if kernel != "coarse":  # its atomics are few
            assert atomics[0].endswith({"fp32": ".v4.f32", "bf16": ".add.f32"}[kind])
    (density,) = (name for name in found["density"] if name.startswith(("atom", "red")))
    assert ".relaxed." in density
    assert density.endswith(".add.u32")
    assert not any(name.startswith(("atom", "red")) for name in found["grid"])
    assert not any(name.startswith(("atom", "red")) for name in found["forward"])
    assert any(".v2." in name or ".v4." in name for name in found["forward"] if name.startswith("ld"))
