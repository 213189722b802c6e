"""Event files of `repro inspect --tensorboard`, read by TensorBoard's own reader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
WRITE_AND_READ = """
import json, sys
from pathlib import Path
from repro.inspect import tensorboard
from repro.inspect.records import Probe, Step
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

steps = [Step(n=0, phase="forward", min=-1.0, max=2.0),
         Step(n=4, phase="backward", nan=2, growth=3.0, quantiles=(0.0, 1.0, 2.0, 3.0, 4.0))]
home = tensorboard.write(Probe(steps=steps), Path(sys.argv[1]), "torch2.13.0-cpu")
reader = EventAccumulator(str(home))
reader.Reload()
tags = reader.Tags()["scalars"]
print(json.dumps({tag: [(one.step, one.value) for one in reader.Scalars(tag)] for tag in tags}))
"""


@pytest.fixture(scope="module")
def extra(tmp_path_factory):
    """A folder with what the extra `tensorboard` names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["optional-dependencies"]["tensorboard"]
    folder = tmp_path_factory.mktemp("extra")
    uv = ["-m", "uv", "pip", "install", "--quiet", "--python", sys.executable, "--target", folder]
    subprocess.run([sys.executable, *uv, *wanted], check=True)
    return folder


def test_tensorboards_own_reader_finds_every_scalar(extra, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(extra), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-c", WRITE_AND_READ, str(tmp_path)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert {tag: seen[tag] for tag in ("forward/min", "forward/max", "backward/nan", "backward/growth")} == {
        "forward/min": [[0, -1.0]],
        "forward/max": [[0, 2.0]],
        "backward/nan": [[4, 2.0]],
        "backward/growth": [[4, 3.0]],
    }
    assert seen["backward/quantile 99 %"] == [[4, 4.0]]
